/* Defines SANITIZED if a sanitizer replaces the heap. Allocation counts and memory sizes are then
 * not those of the program. */
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
