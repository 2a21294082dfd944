/* A stdio MCP server that starts in a millisecond, so that connecting to fifty measures the host and not the servers.
 *
 * It knows initialize, tools/list (ten tools), tools/call and ping, one message a line, and trusts its client: the
 * first "id" and the first "method" of a line are taken for those of the message. It ends with its stdin.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TOOLS = 10, LINE = 1 << 20 };

static char input[LINE], output[1 << 16], tools[1 << 14];

static void list_tools(void) {
    char *end = tools + sprintf(tools, "{\"tools\":[");
    for (int number = 0; number < TOOLS; number++)
        end += sprintf(end,
                       "%s{\"name\":\"look_up_%05d\",\"description\":\"Looks up records of kind %d.\",\"inputSchema\":"
                       "{\"type\":\"object\",\"properties\":{\"words\":{\"type\":\"string\"}}},"
                       "\"annotations\":{\"readOnlyHint\":true}}",
                       number ? "," : "", number, number);
    sprintf(end, "]}");
}

/* The value of a member, as its JSON text; NULL if the line does not have it. */
static char *member(char *line, const char *name, size_t *length) {
    char *value = strstr(line, name);
    if (!value) return NULL;
    value += strlen(name);
    while (*value == ' ') value++;
    if (*value == '"') {
        char *end = strchr(value + 1, '"');
        *length = end ? (size_t)(end - value) + 1 : 0;
    } else {
        *length = strcspn(value, ",}");
    }
    return value;
}

static const char *answer(const char *method, size_t length) {
#define IS(name) (length == sizeof(name) + 1 && !strncmp(method + 1, name, length - 2))
    if (IS("tools/call")) return "\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"ok\"}],\"isError\":false}";
    if (IS("ping")) return "\"result\":{}";
    if (IS("initialize"))
        return "\"result\":{\"protocolVersion\":\"2025-11-25\",\"capabilities\":{\"tools\":{\"listChanged\":true}},"
               "\"serverInfo\":{\"name\":\"tiny\",\"version\":\"1\"}}";
    return IS("tools/list") ? NULL : "\"error\":{\"code\":-32601,\"message\":\"method not found\"}";
}

static void take(char *line) {
    size_t id_length, method_length;
    char *id = member(line, "\"id\":", &id_length), *method = member(line, "\"method\":", &method_length);
    if (!id || !method) return;
    const char *body = answer(method, method_length);
    int length = snprintf(output, sizeof output, "{\"jsonrpc\":\"2.0\",\"id\":%.*s,%s%s}\n", (int)id_length, id,
                          body ? body : "\"result\":", body ? "" : tools);
    for (char *next = output; length > 0;) {
        ssize_t written = write(1, next, (size_t)length);
        if (written <= 0) exit(0);
        next += written;
        length -= (int)written;
    }
}

int main(void) {
    size_t held = 0;
    list_tools();
    for (;;) {
        ssize_t count = read(0, input + held, LINE - 1 - held);
        if (count <= 0) return 0;
        held += (size_t)count;
        input[held] = 0;
        char *line = input, *end;
        while ((end = memchr(line, '\n', held - (size_t)(line - input)))) {
            *end = 0;
            take(line);
            line = end + 1;
        }
        held -= (size_t)(line - input);
        memmove(input, line, held);
    }
}
