#include "../worker/load_impl.h"
