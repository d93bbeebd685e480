#include "words.h"

#include <lib/trace-provider/start.h>

int main(void) {
  trace_provider_start();
  write_words();
  return 0;
}
