// The older path of <lib/trace-engine/types.h>.
#pragma once

#include <lib/trace-engine/types.h>
