// The older path of <lib/trace-engine/fields.h>.
#pragma once

#include <lib/trace-engine/fields.h>
