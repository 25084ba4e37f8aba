#include "cli/npy.h"

#include <cstring>
#include <fstream>
#include <vector>

#include "base/diagnostic_codes.h"

namespace relay::cli {
namespace {

using runtime::DType;
using runtime::Tensor;

[[noreturn]] void bad(const std::string& path, const std::string& why) {
  throw UserError(Diagnostic(codes::driver_file, Span::place(SourceFile::make(path), "file"), why)
                      .expected("a .npy file as numpy.save writes it"));
}

// The text behind "'key':" in the header's dictionary.
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
  DType d = kind == 'f'   ? DType::Float(size * 8)
            : kind == 'i' ? DType::Int(size * 8)
            : kind == 'u' ? DType::UInt(size * 8)
                          : DType::Bool();
  if ((kind != 'f' && kind != 'i' && kind != 'u' && kind != 'b') || !d.valid()) {
    bad(path, "dtype " + std::string(descr) + " is not supported");
  }
  return d;
}

}  // namespace

Tensor read_npy(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  if (!in) bad(path, "the file cannot be opened");
  unsigned char head[12] = {};
  in.read(reinterpret_cast<char*>(head), 10);
  if (!in || std::memcmp(head, "\x93NUMPY", 6) != 0) bad(path, "the file is not a .npy file");
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
  bool fortran = entry(header, "fortran_order").starts_with("True");
  std::string_view text = entry(header, "shape");
  std::vector<int64_t> shape;
  if (text.empty() || text[0] != '(') bad(path, "the header has no shape");
  for (size_t i = 1; i < text.size() && text[i] != ')'; ++i) {
    if (text[i] == ',' || text[i] == ' ') continue;
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
  int64_t bytes = static_cast<int64_t>(dtype.bytes());
  for (int64_t d : shape) {
    if (__builtin_mul_overflow(bytes, d, &bytes)) bad(path, "the shape is absurdly large");
  }
  if (bytes > available) bad(path, "the file is truncated");
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

void write_npy(runtime::TemporaryFile& file, const Tensor& t) {
  DType d = t.dtype();
  std::string descr = (d.bytes() == 1 ? "|" : "<") +
                      std::string(d.is_bool()          ? "b"
                                  : d.is_int()         ? "i"
                                  : d.is_float(d.bits) ? "f"
                                                       : "u") +
                      std::to_string(d.bytes());
  std::string header = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (";
  for (int64_t s : t.shape()) header += std::to_string(s) + ",";
  header += "), }";
  while ((header.size() + 11) % 64 != 0) header += ' ';
  header += '\n';
  std::string head = "\x93NUMPY\x01";
  head += '\0';
  head += static_cast<char>(header.size() & 255);
  head += static_cast<char>(header.size() >> 8);
  file.write(head.data(), head.size());
  file.write(header.data(), header.size());
  file.write(t.data(), t.byte_size());
}

}  // namespace relay::cli
