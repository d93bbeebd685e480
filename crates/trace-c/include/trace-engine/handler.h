// The older path of <lib/trace-engine/handler.h>.
#pragma once

#include <lib/trace-engine/handler.h>
