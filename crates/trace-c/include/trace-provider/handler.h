// The older path of <lib/trace-provider/handler.h>.
#pragma once

#include <lib/trace-provider/handler.h>
