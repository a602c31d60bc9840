#!/bin/sh
echo "coverage reports need Bazel's own tools, which are not part of this build" >&2
exit 1
