/* SANITIZED: a sanitizer has the heap, so that figures and counts of it are not the program's. */
#ifndef MICA_TEST_SANITIZED_H
#define MICA_TEST_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) || __has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#endif

#endif
