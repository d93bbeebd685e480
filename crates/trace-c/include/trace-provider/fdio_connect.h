// The older path of <lib/trace-provider/fdio_connect.h>.
#pragma once

#include <lib/trace-provider/fdio_connect.h>
