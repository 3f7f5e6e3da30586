/* A library that the fixture missing_lib is linked with, and that is removed afterwards. */
extern int missing_library(void);
int missing_library(void)
{
    return 0;
}
