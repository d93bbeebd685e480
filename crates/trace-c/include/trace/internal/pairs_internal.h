// The older path of <lib/trace/internal/pairs_internal.h>.
#pragma once

#include <lib/trace/internal/pairs_internal.h>
