// The older path of <lib/trace-engine/instrumentation.h>.
#pragma once

#include <lib/trace-engine/instrumentation.h>
