#include "known.h"

void another() {
  sites(1);
  wait(0, nullptr);
  in_line();
  in_template(3);
}
