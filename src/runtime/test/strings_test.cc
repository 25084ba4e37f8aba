#include "runtime/core/strings.h"

#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "base/diagnostic.h"

namespace relay::runtime {
namespace {

TEST(Strings, utf8_is_what_the_standard_says) {
  for (const char* good : {"", "a", "\xC3\xA9", "\xE2\x82\xAC", "\xF0\x9F\x98\x80", "\xEF\xBF\xBF",
                           "\xF4\x8F\xBF\xBF"}) {
    EXPECT_TRUE(is_utf8(good)) << good;
  }
  for (const char* bad : {"\x80", "\xC3", "\xC0\x80", "\xC1\xBF", "\xE0\x80\x80", "\xE0\x9F\xBF",
                          "\xED\xA0\x80", "\xF0\x80\x80\x80", "\xF4\x90\x80\x80",
                          "\xF5\x80\x80\x80", "\xE2\x82", "\xE2(\xA1", "\xFF"}) {
    EXPECT_FALSE(is_utf8(bad)) << bad;
  }
}

TEST(Strings, a_tensor_owns_what_it_is_made_of) {
  Tensor t;
  {
    std::string words[] = {"one", "", std::string("a\0b", 3), std::string(5000, 'x')};
    t = make_strings({2, 2}, {words[0], words[1], words[2], words[3]});
  }
  EXPECT_EQ(type_string(t.dtype(), t.shape()), "Tensor[(2, 2), string]");
  EXPECT_EQ(string_at(t, 0), "one");
  EXPECT_EQ(string_at(t, 1), "");
  EXPECT_EQ(string_at(t, 2), std::string_view("a\0b", 3));
  EXPECT_EQ(string_at(t, 3).size(), 5000u);
  EXPECT_TRUE(t.read_only());
}

TEST(Strings, code_points_become_utf8) {
  const uint32_t texts[] = {'a', 0, 'b', 0xE9, 0x20AC, 0x1F600, 0, 0, 0, 0x7FF, 0x800, 0x10FFFF};
  auto t = make_strings(Shape{std::array<int64_t, 2>{2, 2}}, texts, 3);
  ASSERT_TRUE(t);
  EXPECT_EQ(string_at(*t, 0), std::string_view("a\0b", 3));
  EXPECT_EQ(string_at(*t, 1), "\xC3\xA9\xE2\x82\xAC\xF0\x9F\x98\x80");
  EXPECT_EQ(string_at(*t, 2), "");
  EXPECT_EQ(string_at(*t, 3), "\xDF\xBF\xE0\xA0\x80\xF4\x8F\xBF\xBF");
  for (uint32_t bad : {0xD800u, 0xDFFFu, 0x110000u, 0xFFFFFFFFu}) {
    EXPECT_FALSE(make_strings(Shape{std::array<int64_t, 1>{1}}, &bad, 1)) << bad;
  }
}

TEST(Strings, bytes_that_are_no_text_are_refused) {
  EXPECT_THROW(make_strings({1}, {"\xC3("}), UserError);
}

TEST(Strings, equal_is_by_content) {
  Tensor a = make_strings({2}, {"x", "yz"}), b = make_strings({2}, {"x", "yz"});
  EXPECT_TRUE(bit_equal(a, b));
  EXPECT_EQ(bit_hash(a), bit_hash(b));
  EXPECT_FALSE(bit_equal(a, make_strings({2}, {"xy", "z"})));
  EXPECT_FALSE(bit_equal(a, make_strings({1, 2}, {"x", "yz"})));
}

TEST(Strings, the_order_is_that_of_bytes) {
  const std::string_view letters[] = {std::string_view("\0", 1), "a", "b", "\xC3\xA9"};
  std::vector<std::string> texts{""};
  // All of up to three letters, alone and behind others, so that sizes on both sides of four and eight bytes differ late.
  for (size_t i = 0; i < 21; ++i) {
    for (std::string_view letter : letters) texts.push_back(texts[i] + std::string(letter));
  }
  for (size_t i = 0, n = texts.size(); i < n; ++i) {
    for (const char* front : {"bb", "abcde", "0123456"}) texts.push_back(front + texts[i]);
  }
  const std::vector<std::string_view> views(texts.begin(), texts.end());
  const std::array<int64_t, 1> shape{static_cast<int64_t>(views.size())};
  const Tensor t = make_strings(Shape{shape}, views);
  const relay_string_function compare = string_functions()[string_function("string_compare")];
  const relay_string_function key = string_functions()[string_function("string_key")];
  for (size_t i = 0; i < views.size(); ++i) {
    for (size_t j = 0; j < views.size(); ++j) {
      const int64_t words[] = {t.data<int64_t>()[i], t.data<int64_t>()[j]};
      const int wanted = views[i].compare(views[j]);
      const int64_t got = compare(nullptr, words);
      ASSERT_EQ(got < 0, wanted < 0) << texts[i] << " and " << texts[j];
      ASSERT_EQ(got > 0, wanted > 0) << texts[i] << " and " << texts[j];
      const auto a = static_cast<uint64_t>(key(nullptr, &words[0]));
      const auto b = static_cast<uint64_t>(key(nullptr, &words[1]));
      if (a != b) {
        ASSERT_EQ(a < b, wanted < 0) << texts[i] << " and " << texts[j];
      } else if ((a & 0xFF) != kLongKey) {
        ASSERT_EQ(wanted, 0) << texts[i] << " and " << texts[j];
      }
    }
  }
}

TEST(Strings, moved_words_become_owned) {
  Tensor moved = Tensor::empty(DType::String(), {1000});
  {
    Tensor from = make_strings({2}, {std::string(100000, 'l'), "s"});
    for (int64_t i = 0; i < 1000; ++i) {
      moved.data<int64_t>()[i] = i % 3 == 2 ? 0 : from.data<int64_t>()[i % 3];
    }
    own_strings(Value::tuple({Value(moved), Value(Tensor::scalar(1, DType::Int(32)))}));
  }
  EXPECT_TRUE(moved.read_only());
  EXPECT_EQ(string_at(moved, 999).size(), 100000u);
  EXPECT_EQ(string_at(moved, 997), "s");
  EXPECT_EQ(string_at(moved, 998), "");
  // What is broadcast stays one string.
  EXPECT_EQ(string_at(moved, 0).data(), string_at(moved, 999).data());
}

TEST(Strings, copies_and_views_outlive_what_they_are_made_of) {
  Tensor copy, view;
  {
    Tensor t = make_strings({4}, {"a", "b", "c", "d"});
    copy = t.copy();
    view = t.reshape({2, 2});
  }
  EXPECT_EQ(string_at(copy, 3), "d");
  EXPECT_EQ(string_at(view, 2), "c");
}

TEST(Strings, packed_and_unpacked_are_the_same) {
  Tensor t = make_strings({3}, {"", "one", "\xE2\x82\xAC"});
  std::string packed = pack_strings(t);
  EXPECT_EQ(packed.size(), 3 * 8 + 6u);
  std::string more = packed + "rest";
  std::string_view bytes = more;
  auto back = unpack_strings(t.shape(), bytes);
  ASSERT_TRUE(back);
  EXPECT_TRUE(bit_equal(t, *back));
  EXPECT_EQ(bytes, "rest");
}

TEST(Strings, damaged_packs_are_noticed) {
  Tensor t = make_strings({3}, {"", "one", "\xE2\x82\xAC"});
  const std::string packed = pack_strings(t);
  for (size_t size = 0; size < packed.size(); ++size) {
    std::string_view bytes = std::string_view(packed).substr(0, size);
    EXPECT_FALSE(unpack_strings(t.shape(), bytes)) << size;
  }
  for (size_t at = 0; at < packed.size(); ++at) {
    std::string bytes = packed;
    bytes[at] = static_cast<char>(bytes[at] ^ 0x80);
    std::string_view view = bytes;
    EXPECT_FALSE(unpack_strings(t.shape(), view)) << at;
  }
}

TEST(Strings, dlpack_has_none) { EXPECT_THROW(to_dlpack(make_strings({1}, {"x"})), UserError); }

}  // namespace
}  // namespace relay::runtime
