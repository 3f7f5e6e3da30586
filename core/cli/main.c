/* The program: maps the first word to a command. */
int main(void)
{
    return 0;
}
