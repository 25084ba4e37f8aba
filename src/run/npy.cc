#include "run/npy.h"

#include <algorithm>
#include <cstring>
#include <fstream>
#include <string_view>
#include <vector>

#include "base/codes/driver.h"
#include "runtime/core/strings.h"

namespace relay {
namespace {

using runtime::DType;
using runtime::Tensor;

constexpr int64_t kMaxEmptyStrings = int64_t{1} << 20;

[[noreturn]] void bad(const std::string& path, const std::string& why) {
  throw UserError(Diagnostic(codes::driver_file, Span::place(SourceFile::make(path), "file"), why)
                      .expected(path.ends_with(".npz") ? "an archive as numpy.savez writes it"
                                                       : "a .npy file as numpy.save writes it"));
}

// The text after "'key':" in the header's dictionary.
std::string_view entry(const std::string& header, const std::string& key) {
  size_t at = header.find("'" + key + "'");
  if (at == std::string::npos) return {};
  at = header.find(':', at);
  if (at == std::string::npos) return {};
  at = header.find_first_not_of(' ', at + 1);
  return at == std::string::npos ? std::string_view() : std::string_view(header).substr(at);
}

DType dtype_of(const std::string& path, std::string_view descr) {
  if (descr.size() < 4 || descr[0] != '\'') bad(path, "the header has no simple dtype");
  descr = descr.substr(1, descr.find('\'', 1) - 1);
  char order = descr[0], kind = descr.size() > 1 ? descr[1] : ' ';
  int size = descr.size() > 2 ? std::atoi(std::string(descr.substr(2)).c_str()) : 0;
  if (order == '>' && size > 1) bad(path, "big-endian numbers are not supported");
  if (kind == 'U' && order == '<') return DType::String();
  DType d = kind == 'f'   ? DType::Float(size * 8)
            : kind == 'i' ? DType::Int(size * 8)
            : kind == 'u' ? DType::UInt(size * 8)
                          : DType::Bool();
  if ((kind != 'f' && kind != 'i' && kind != 'u' && kind != 'b') || !d.valid()) {
    bad(path, "dtype " + std::string(descr) + " is not supported");
  }
  return d;
}

// The characters of an element of a dtype such as '<U12'.
int64_t characters(const std::string& path, std::string_view descr) {
  int64_t n = 0;
  for (size_t i = 3; i < descr.size() && descr[i] >= '0' && descr[i] <= '9'; ++i) {
    n = n * 10 + (descr[i] - '0');
    if (n > int64_t{1} << 30) bad(path, "the strings are absurdly long");
  }
  return n;
}

void append_utf8(std::string& out, uint32_t c) {
  if (c < 0x80) {
    out += static_cast<char>(c);
    return;
  }
  const int more = c < 0x800 ? 1 : c < 0x10000 ? 2 : 3;
  constexpr int kFirst[] = {0, 0xC0, 0xE0, 0xF0};
  out += static_cast<char>(kFirst[more] | static_cast<int>(c >> (6 * more)));
  for (int i = more; i-- > 0;) out += static_cast<char>(0x80 | (c >> (6 * i) & 0x3F));
}

// Strings of `length` characters of 32 bits each, filled up with zeros.
Tensor strings_of(const std::string& path, const std::string& bytes,
                  const std::vector<int64_t>& shape, int64_t length) {
  const auto count = static_cast<size_t>(runtime::checked_num_elements(DType::String(), shape));
  std::vector<std::string> texts(count);
  for (size_t i = 0; i < count; ++i) {
    std::vector<uint32_t> line(static_cast<size_t>(length));
    if (length > 0) std::memcpy(line.data(), bytes.data() + i * line.size() * 4, line.size() * 4);
    while (!line.empty() && line.back() == 0) line.pop_back();
    for (uint32_t c : line) {
      if (c > 0x10FFFF || (c >= 0xD800 && c < 0xE000)) bad(path, "a character does not exist");
      append_utf8(texts[i], c);
    }
  }
  return runtime::make_strings(shape, std::vector<std::string_view>(texts.begin(), texts.end()));
}

// The characters of UTF-8.
std::vector<uint32_t> characters_of(std::string_view text) {
  std::vector<uint32_t> out;
  for (size_t i = 0; i < text.size();) {
    const auto first = static_cast<unsigned char>(text[i++]);
    const int more = first >= 0xF0 ? 3 : first >= 0xE0 ? 2 : first >= 0xC0 ? 1 : 0;
    uint32_t c = more == 0 ? first : first & (0x3F >> more);
    for (int n = 0; n < more; ++n) c = c << 6 | (static_cast<unsigned char>(text[i++]) & 0x3F);
    out.push_back(c);
  }
  return out;
}

std::ifstream opened(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) bad(path, "the file cannot be opened");
  return in;
}

}  // namespace

Tensor read_array(std::istream& in, const std::string& path) {
  unsigned char head[12] = {};
  in.read(reinterpret_cast<char*>(head), 10);
  if (!in || std::memcmp(head, "\x93NUMPY", 6) != 0)
    bad(path, "the content is not that of a .npy file");
  size_t length = head[8] | head[9] << 8;
  if (head[6] >= 2) {
    in.read(reinterpret_cast<char*>(head + 10), 2);
    length |= static_cast<size_t>(head[10]) << 16 | static_cast<size_t>(head[11]) << 24;
  }
  if (length > 1 << 20) bad(path, "the header is absurdly long");
  std::string header(length, '\0');
  in.read(header.data(), static_cast<std::streamsize>(length));
  if (!in) bad(path, "the file is truncated");
  DType dtype = dtype_of(path, entry(header, "descr"));
  const std::string_view order = entry(header, "fortran_order");
  const bool fortran = order.starts_with("True");
  if (!fortran && !order.starts_with("False")) bad(path, "the header has no order of elements");
  std::string_view text = entry(header, "shape");
  std::vector<int64_t> shape;
  if (text.empty() || text[0] != '(') bad(path, "the header has no shape");
  for (size_t i = 1; i < text.size() && text[i] != ')'; ++i) {
    if (text[i] == ',' || text[i] == ' ') continue;
    if (text[i] < '0' || text[i] > '9') bad(path, "the shape is not a tuple of sizes");
    int64_t v = 0;
    for (; i < text.size() && text[i] >= '0' && text[i] <= '9'; ++i) {
      if (v > int64_t{1} << 50) bad(path, "a dimension is absurdly large");
      v = v * 10 + (text[i] - '0');
    }
    shape.push_back(v);
    --i;
  }
  auto at = in.tellg();
  in.seekg(0, std::ios::end);
  int64_t available = static_cast<int64_t>(in.tellg() - at);
  in.seekg(at);
  const int64_t letters = dtype.is_string() ? characters(path, entry(header, "descr")) : 0;
  int64_t bytes = dtype.is_string() ? 4 * letters : static_cast<int64_t>(dtype.bytes());
  for (int64_t d : shape) {
    if (__builtin_mul_overflow(bytes, d, &bytes)) bad(path, "the shape is absurdly large");
  }
  if (bytes > available) bad(path, "the file is truncated");
  if (dtype.is_string()) {
    if (fortran && shape.size() > 1) bad(path, "strings in Fortran's order are not supported");
    // A dtype without characters leaves the number of strings to the shape.
    if (letters == 0 &&
        runtime::checked_num_elements(dtype, shape) > available + kMaxEmptyStrings) {
      bad(path, "the shape is absurdly large");
    }
    std::string content(static_cast<size_t>(bytes), '\0');
    in.read(content.data(), static_cast<std::streamsize>(bytes));
    return strings_of(path, content, shape, letters);
  }
  Tensor t = Tensor::empty(dtype, shape);
  in.read(t.data<char>(), static_cast<std::streamsize>(bytes));
  if (!fortran || shape.size() < 2) return t;
  Tensor out = Tensor::empty(dtype, shape);
  size_t item = dtype.bytes();
  std::vector<int64_t> index(shape.size(), 0);
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    int64_t flat = 0;
    for (size_t d = 0; d < shape.size(); ++d) flat = flat * shape[d] + index[d];
    std::memcpy(out.data<char>() + static_cast<size_t>(flat) * item,
                t.data<char>() + static_cast<size_t>(i) * item, item);
    for (size_t d = 0; d < shape.size() && ++index[d] == shape[d]; ++d) index[d] = 0;
  }
  return out;
}

Tensor read_npy(const std::string& path) {
  std::ifstream in = opened(path);
  return read_array(in, path);
}

Tensor with_dtype(const Tensor& array, DType dtype) {
  if (!dtype.is_bfloat16() || array.dtype() != DType::UInt(16)) return array;
  Tensor out = Tensor::empty(dtype, array.shape());
  std::memcpy(out.data<char>(), array.data(), array.byte_size());
  return out;
}

NpyFile npy_file(const Tensor& t) {
  NpyFile out;
  DType d = t.dtype();
  std::vector<uint32_t>& text = out.text;
  size_t length = 1;  // NumPy has no strings without characters
  if (d.is_string()) {
    std::vector<std::vector<uint32_t>> lines;
    for (int64_t i = 0; i < t.num_elements(); ++i) {
      lines.push_back(characters_of(runtime::string_at(t, i)));
      if (!lines.back().empty() && lines.back().back() == 0) {
        throw UserError(Diagnostic(codes::driver_file, {},
                                   "a .npy file cannot hold a string that ends with a zero"));
      }
      length = std::max(length, lines.back().size());
    }
    for (std::vector<uint32_t>& line : lines) {
      line.resize(length);
      text.insert(text.end(), line.begin(), line.end());
    }
  }
  std::string descr = (d.bytes() == 1 ? "|" : "<") +
                      std::string(d.is_bool()          ? "b"
                                  : d.is_int()         ? "i"
                                  : d.is_float(d.bits) ? "f"
                                  : d.is_string()      ? "U"
                                                       : "u") +
                      std::to_string(d.is_string() ? length : d.bytes());
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t s : t.shape()) header += std::to_string(s) + ",";
  header += "), }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::string& head = out.head;
  head = "\x93NUMPY\x01";
  head += '\0';
  head += static_cast<char>(header.size() & 255);
  head += static_cast<char>(header.size() >> 8);
  head += header;
  out.elements = d.is_string() ? std::string_view(reinterpret_cast<const char*>(text.data()),
                                                  text.size() * sizeof(uint32_t))
                               : std::string_view(t.data<char>(), t.byte_size());
  return out;
}

void write_npy(runtime::TemporaryFile& file, const Tensor& t) {
  const NpyFile npy = npy_file(t);
  file.write(npy.head.data(), npy.head.size());
  file.write(npy.elements.data(), npy.elements.size());
}

}  // namespace relay
