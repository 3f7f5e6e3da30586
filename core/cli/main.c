/* The program: finds the command, takes the command line apart, runs, and makes the exit code. The only file that ends the process. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cli/cli.h"
#include "core/cli/version.h"

enum { EXIT_DONE = 0, EXIT_FAILED = 1, EXIT_REQUEST = 2 };

static int usage(FILE *out)
{
    fprintf(out, "sodet: object detectors whose parts are plugins named in an INI file\n\nusage: sodet <command> [x.ini] "
                 "[section.key=value ...]\n\n");
    for (int i = 0; sd_commands[i]; i++)
        fprintf(out, "  %-10s %s\n", sd_commands[i]->name, sd_commands[i]->summary);
    fprintf(out, "\n`sodet help <command>` says more, `sodet help` lists the topics, `sodet --version` what this was built with.\n");
    return out == stdout ? EXIT_DONE : EXIT_REQUEST;
}

static int unknown(const char *word)
{
    const char *names[64];
    uint64_t n = 0;
    if (!*word) {
        fprintf(stderr, "sodet: the command is an empty word (a variable without a value?); `sodet help` lists the commands\n");
        return EXIT_REQUEST;
    }
    while (sd_commands[n] && n < 64) {
        names[n] = sd_commands[n]->name;
        n++;
    }
    const char *near = sd_nearest(word, names, n);
    if (near)
        fprintf(stderr, "sodet: there is no command %s; did you mean %s?\n", word, near);
    else
        fprintf(stderr, "sodet: there is no command %s; `sodet help` lists them\n", word);
    return EXIT_REQUEST;
}

/* Results that did not reach their reader are a failure, whatever the command thinks. */
static int flushed(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        fprintf(stderr, "sodet: writing to the standard output failed\n");
        return code ? code : EXIT_FAILED;
    }
    return code;
}

/* The CPU backend's compute threads (libgomp) wait for each other by spinning. Loader threads and other programs need the processors
 * as well: spinning without bound makes a step several times slower on a busy machine, a short spin costs nothing on a quiet one. The
 * library reads this when the backend is loaded; what the user has set stays. */
static void bound_spinning(void)
{
    if (!getenv("OMP_WAIT_POLICY"))
        setenv("GOMP_SPINCOUNT", "10000", 0);
}

/* A stream that the caller has closed stays one that fails: the next file that is opened would get its number, and the messages. */
static void occupy_closed_streams(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) == -1 && errno == EBADF)
            (void)!open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY); /* gets the lowest free number: fd */
}

int main(int argc, char **argv)
{
    sodet_err err = SODET_ERR_INIT;
    occupy_closed_streams();
    signal(SIGXFSZ, SIG_IGN); /* a file over `ulimit -f` is an error with a sentence, not an end */
    bound_spinning();
    if (argc < 2)
        return usage(stderr);
    if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0) {
        sd_version_print(stdout);
        return flushed(EXIT_DONE);
    }
    if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
        return flushed(usage(stdout));
    const sd_command *command = sd_cli_find(argv[1]);
    if (!command)
        return unknown(argv[1]);

    sd_cli cli = {0};
    sodet_status s = sd_cli_parse(&cli, command, argc - 1, argv + 1, &err);
    if (s == SODET_OK && cli.help) {
        sd_text text = {0};
        sd_cli_help(command, &text);
        s = sd_cli_say(&text, &err);
    } else if (s == SODET_OK) {
        s = command->run(&cli, &err);
    }
    int code = s == SODET_OK ? EXIT_DONE : cli.started ? EXIT_FAILED : EXIT_REQUEST;
    if (s != SODET_OK) {
        fflush(stdout);
        fprintf(stderr, "sodet %s: %s\n", command->name, err.text[0] ? err.text : "failed without a message");
        if (cli.verbose)
            fprintf(stderr, "  (%s:%d, status %d)\n", err.file, (int)err.line, (int)err.code);
    }
    if (cli.exit_code)
        code = cli.exit_code;
    sd_cli_free(&cli);
    return flushed(code);
}
