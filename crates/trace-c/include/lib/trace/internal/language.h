// Reports a language that is too old, once, instead of what fails further down because of that.
#ifndef LIB_TRACE_INTERNAL_LANGUAGE_H_
#define LIB_TRACE_INTERNAL_LANGUAGE_H_

#if defined(__cplusplus) && __cplusplus < 201703L
#error "The headers of libtrace need C++17 or newer: compile with -std=c++17"
#define TRACE_INTERNAL_OLD_LANGUAGE
#endif

#endif  // LIB_TRACE_INTERNAL_LANGUAGE_H_
