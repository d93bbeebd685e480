// The older path of <lib/trace-engine/context.h>.
#pragma once

#include <lib/trace-engine/context.h>
