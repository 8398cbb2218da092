/* Programs for metal-cpp often include this header beside Metal.hpp. Drawing on a screen is not
 * supported, so it declares nothing. */
#ifndef SOFTMETAL_CPP_QUARTZCORE_HPP
#define SOFTMETAL_CPP_QUARTZCORE_HPP

#include "../Metal/Metal.hpp"

#endif
