// The older path of <lib/trace-provider/provider.h>.
#pragma once

#include <lib/trace-provider/provider.h>
