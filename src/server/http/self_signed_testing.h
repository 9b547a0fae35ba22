#pragma once

#include <cstdio>
#include <filesystem>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/x509.h>
#include <string>
#include <unistd.h>

#include "server/http/transport.h"

namespace shoal::server {

// A key and the certificate that it has signed itself, in two files.
class SelfSigned {
 public:
  enum class Kind { elliptic, rsa };
  explicit SelfSigned(long serial = 1, Kind kind = Kind::elliptic)
      : folder_(std::filesystem::temp_directory_path() /
                ("shoal_tls_" + std::to_string(getpid()) + "_" + std::to_string(++count_))) {
    std::filesystem::create_directories(folder_);
    EVP_PKEY* key = kind == Kind::rsa ? EVP_RSA_gen(2048) : EVP_EC_gen("P-256");
    X509* x509 = X509_new();
    ASN1_INTEGER_set(X509_get_serialNumber(x509), serial);
    X509_gmtime_adj(X509_getm_notBefore(x509), 0);
    X509_gmtime_adj(X509_getm_notAfter(x509), 3600);
    X509_set_pubkey(x509, key);
    X509_NAME* name = X509_get_subject_name(x509);
    X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, reinterpret_cast<const unsigned char*>("localhost"),
                               -1, -1, 0);
    X509_set_issuer_name(x509, name);
    X509_sign(x509, key, EVP_sha256());
    write(certificate(), [&](std::FILE* file) { PEM_write_X509(file, x509); });
    write(this->key(),
          [&](std::FILE* file) { PEM_write_PrivateKey(file, key, nullptr, nullptr, 0, nullptr, nullptr); });
    write(locked_key(), [&](std::FILE* file) {
      PEM_write_PrivateKey(file, key, EVP_aes_128_cbc(), reinterpret_cast<const unsigned char*>("word"), 4,
                           nullptr, nullptr);
    });
    X509_free(x509);
    EVP_PKEY_free(key);
  }
  ~SelfSigned() { std::filesystem::remove_all(folder_); }

  std::string certificate() const { return folder_ / "certificate.pem"; }
  std::string key() const { return folder_ / "key.pem"; }
  std::string locked_key() const { return folder_ / "locked_key.pem"; }
  // Of a server with this identity.
  TransportOptions options() const {
    TransportOptions options;
    options.threads = 2;
    options.tls_certificate = certificate();
    options.tls_key = key();
    return options;
  }
  // As certbot and Kubernetes do it: each file is replaced at once, one after the other.
  void become(const SelfSigned& other) const {
    replace(certificate(), other.certificate());
    replace(key(), other.key());
  }
  static void replace(const std::string& path, const std::string& with) {
    std::filesystem::copy_file(with, path + ".new", std::filesystem::copy_options::overwrite_existing);
    std::filesystem::rename(path + ".new", path);
  }

 private:
  template <typename Write>
  static void write(const std::string& path, Write write_to) {
    std::FILE* file = std::fopen(path.c_str(), "w");
    write_to(file);
    std::fclose(file);
  }

  static inline int count_ = 0;
  std::filesystem::path folder_;
};

}  // namespace shoal::server
