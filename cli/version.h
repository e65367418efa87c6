// version - the tool's version and every key field, one per line.
#ifndef FT_CLI_VERSION_H
#define FT_CLI_VERSION_H

int ft_cli_print_version(void);

#endif
