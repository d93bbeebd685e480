// The older path of <lib/trace/internal/string_traits.h>.
#pragma once

#include <lib/trace/internal/string_traits.h>
