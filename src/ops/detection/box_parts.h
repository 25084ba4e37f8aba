// What is known of a box: its corners, whichever two are given, what it covers, and its class where there are several.
#pragma once

namespace relay::ops {

enum BoxPart { kLowY, kLowX, kHighY, kHighX, kArea, kBoxParts, kClass = kBoxParts, kClassedParts };

}  // namespace relay::ops
