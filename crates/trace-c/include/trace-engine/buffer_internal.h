// The older path of <lib/trace-engine/buffer_internal.h>.
#pragma once

#include <lib/trace-engine/buffer_internal.h>
