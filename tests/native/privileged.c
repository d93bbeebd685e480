// Registers with a manager, says whether it got an answer, and waits for the end of its input.
#include <lib/trace-provider/provider.h>

#include <stdio.h>

int main(void) {
  bool started = false;
  trace_provider_t* provider = trace_provider_create_synchronously_with_fdio(NULL, "privileged", &started);
  printf("ready\n");
  fflush(stdout);
  getchar();
  trace_provider_destroy(provider);
  return 0;
}
