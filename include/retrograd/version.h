// The version of the library.
// Releases are numbered by https://semver.org. The ABI version is raised by every release that older programs cannot be
// linked with; it names the shared library (libretrograd.so.0) and the inline namespace that all code is in
// (retrograd::v0), so that two versions can be in one process. To raise it, change it here and in all `inline v0`.
#pragma once

#define RETROGRAD_VERSION_MAJOR 0
#define RETROGRAD_VERSION_MINOR 1
#define RETROGRAD_VERSION_PATCH 0
#define RETROGRAD_VERSION "0.1.0"
#define RETROGRAD_ABI_VERSION 0
