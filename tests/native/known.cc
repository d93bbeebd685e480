#include "known.h"

// As in the other file of the program, which the linker makes one of.
void other() {
  in_line();
  in_template(2);
}

int main(int argc, char** argv) { return wait(argc, argv); }
