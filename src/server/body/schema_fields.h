// The definitions of schema.h.
#pragma once
