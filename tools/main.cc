// main() of a program whose own has the name PROGRAM (program.bzl).
int PROGRAM(int argc, char** argv);

int main(int argc, char** argv) { return PROGRAM(argc, argv); }
