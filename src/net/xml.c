// SPDX-License-Identifier: Apache-2.0
#include "net/xml.h"

#include "base/buffer.h"
#include "base/limits.h"
#include "base/memory.h"
#include "base/quote.h"
#include "base/utf8.h"

#include <stdint.h>
#include <string.h>

#define NAME_BYTES_MAX 100u
#define PATH_BYTES_MAX (LIMIT_XML_DEPTH * (NAME_BYTES_MAX + 1))

struct xml {
    const char *what, *begin, *at, *end;
    xml_heard heard;
    void *user;
    char path[PATH_BYTES_MAX + 1];
    size_t length;
    unsigned depth;
    bool holds[LIMIT_XML_DEPTH]; /* at this depth: elements */
    struct buffer text;
};

static enum ulp_status bad(const struct xml *xml, const char *why) {
    return fail(ULP_E_IO, "%s is not the XML that it should be: %s, at byte %zu", xml->what, why,
                (size_t)(xml->at - xml->begin));
}

static bool is_space(char byte) {
    return byte == ' ' || byte == '\t' || byte == '\r' || byte == '\n';
}

static bool skip_space(struct xml *xml) {
    const char *from = xml->at;

    while (xml->at < xml->end && is_space(*xml->at))
        xml->at++;
    return xml->at > from;
}

static bool skip(struct xml *xml, const char *text) {
    size_t length = strlen(text);

    if ((size_t)(xml->end - xml->at) < length || memcmp(xml->at, text, length) != 0)
        return false;
    xml->at += length;
    return true;
}

static bool in_name(char byte) {
    return (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
           (byte >= '0' && byte <= '9') || byte == '_' || byte == '-' || byte == '.' || byte == ':';
}

static size_t name_length(const struct xml *xml) {
    size_t length = 0;

    while (xml->at + length < xml->end && in_name(xml->at[length]))
        length++;
    return length <= NAME_BYTES_MAX ? length : 0;
}

/* ---- tags ---- */

static enum ulp_status skip_attributes(struct xml *xml) {
    while (skip_space(xml) && xml->at < xml->end && *xml->at != '>' && *xml->at != '/' &&
           *xml->at != '?') {
        size_t length = name_length(xml);
        char mark;

        if (!length)
            return bad(xml, "no name of an attribute");
        xml->at += length;
        skip_space(xml);
        if (!skip(xml, "="))
            return bad(xml, "an attribute without a value");
        skip_space(xml);
        if (xml->at == xml->end || (*xml->at != '"' && *xml->at != '\''))
            return bad(xml, "an attribute without quotes");
        mark = *xml->at++;
        while (xml->at < xml->end && *xml->at != mark && *xml->at != '<')
            xml->at++;
        if (xml->at == xml->end || *xml->at++ != mark)
            return bad(xml, "an attribute that does not end");
    }
    return ULP_OK;
}

static enum ulp_status close_element(struct xml *xml) {
    const bool holds = xml->depth < LIMIT_XML_DEPTH && xml->holds[xml->depth];
    enum ulp_status status = xml->heard(xml->user, xml->path, holds ? "" : buffer_text(&xml->text));

    while (xml->length && xml->path[xml->length - 1] != '/')
        xml->length--;
    if (xml->length)
        xml->length--;
    xml->path[xml->length] = 0;
    xml->depth--;
    buffer_clear(&xml->text);
    return status;
}

static bool only_space(const struct buffer *text) {
    for (size_t i = 0; i < text->used; i++)
        if (!is_space((char)text->data[i]))
            return false;
    return true;
}

static enum ulp_status open_element(struct xml *xml) {
    size_t length = name_length(xml);
    enum ulp_status status;

    if (!length)
        return bad(xml, "no name of an element");
    if (xml->depth == LIMIT_XML_DEPTH - 1)
        return bad(xml, "too deep");
    if (!only_space(&xml->text))
        return bad(xml, "text beside an element");
    buffer_clear(&xml->text);
    xml->holds[xml->depth++] = true;
    xml->holds[xml->depth] = false;
    if (xml->length)
        xml->path[xml->length++] = '/';
    memcpy(xml->path + xml->length, xml->at, length);
    xml->length += length;
    xml->path[xml->length] = 0;
    xml->at += length;
    status = skip_attributes(xml);
    if (!status && skip(xml, "/>"))
        return close_element(xml);
    return status || skip(xml, ">") ? status : bad(xml, "a tag that does not end");
}

static enum ulp_status end_tag(struct xml *xml) {
    const char *slash = strrchr(xml->path, '/'), *name = slash ? slash + 1 : xml->path;
    size_t length = name_length(xml);

    if (!xml->depth || length != strlen(name) || memcmp(name, xml->at, length) != 0)
        return bad(xml, "the end of another element");
    if (xml->holds[xml->depth] && !only_space(&xml->text))
        return bad(xml, "text beside an element");
    xml->at += length;
    skip_space(xml);
    return skip(xml, ">") ? close_element(xml) : bad(xml, "a tag that does not end");
}

/* ---- text ---- */

static enum ulp_status put_character(struct xml *xml, uint32_t code) {
    uint8_t coded[4];
    size_t length = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;

    if (code > 0x10ffff || (code >= 0xd800 && code < 0xe000) ||
        (code < 0x20 && code != '\t' && code != '\n' && code != '\r'))
        return bad(xml, "a character that is none");
    for (size_t i = length; i-- > 1; code >>= 6)
        coded[i] = (uint8_t)(0x80 | (code & 0x3f));
    coded[0] = (uint8_t)(length == 1 ? code : (0xf00u >> length & 0xf0) | code);
    return buffer_append(&xml->text, coded, length);
}

static enum ulp_status take_number(struct xml *xml) {
    const bool hexadecimal = skip(xml, "x");
    uint32_t code = 0;
    size_t count = 0;

    for (; xml->at < xml->end && *xml->at != ';' && count < 8; xml->at++, count++) {
        const char byte = *xml->at;
        uint32_t value = byte >= '0' && byte <= '9'   ? (uint32_t)(byte - '0')
                         : byte >= 'a' && byte <= 'f' ? (uint32_t)(byte - 'a' + 10)
                         : byte >= 'A' && byte <= 'F' ? (uint32_t)(byte - 'A' + 10)
                                                      : 99;

        if (value >= (hexadecimal ? 16u : 10u))
            return bad(xml, "a number that is none");
        code = code * (hexadecimal ? 16u : 10u) + value;
    }
    if (!count || !skip(xml, ";"))
        return bad(xml, "a number that does not end");
    return put_character(xml, code);
}

static enum ulp_status take_entity(struct xml *xml) {
    static const char *const names[] = {"lt;", "gt;", "amp;", "quot;", "apos;"};
    static const char values[] = "<>&\"'";

    if (skip(xml, "#"))
        return take_number(xml);
    for (size_t i = 0; i < 5; i++)
        if (skip(xml, names[i]))
            return buffer_append(&xml->text, values + i, 1);
    return bad(xml, "an unknown entity");
}

static enum ulp_status take_text(struct xml *xml) {
    const uint8_t *at = (const uint8_t *)xml->at;
    size_t length = utf8_length(at, (size_t)(xml->end - xml->at));

    if (!xml->depth && !is_space(*xml->at))
        return bad(xml, "text outside of everything");
    if (!length || (*at < 0x20 && !is_space(*xml->at)))
        return bad(xml, "a character that is none");
    xml->at += length;
    return xml->depth ? buffer_append(&xml->text, at, length) : ULP_OK;
}

static enum ulp_status take_next(struct xml *xml, bool *had_root) {
    if (skip(xml, "</"))
        return end_tag(xml);
    if (skip(xml, "<")) {
        if (!xml->depth && *had_root)
            return bad(xml, "a second document");
        *had_root = true;
        return open_element(xml);
    }
    if (xml->depth && skip(xml, "&"))
        return take_entity(xml);
    return take_text(xml);
}

enum ulp_status xml_read(const char *what, const char *data, size_t bytes, xml_heard heard,
                         void *user) {
    struct xml xml = {.what = what,
                      .begin = data,
                      .at = data,
                      .end = data + bytes,
                      .heard = heard,
                      .user = user,
                      .text = BUFFER(LIMIT_XML_BYTES)};
    bool had_root = false;
    enum ulp_status status = bytes <= LIMIT_XML_BYTES ? ULP_OK : bad(&xml, "too long");

    skip(&xml, "\xef\xbb\xbf");
    if (!status && skip(&xml, "<?xml")) {
        status = skip_attributes(&xml);
        if (!status && !skip(&xml, "?>"))
            status = bad(&xml, "a declaration that does not end");
    }
    while (!status && xml.at < xml.end)
        status = take_next(&xml, &had_root);
    if (!status && (xml.depth || !had_root))
        status = bad(&xml, "it ends too early");
    if (xml.text.data) /* some of it may be credentials */
        mem_wipe(xml.text.data, xml.text.room);
    buffer_release(&xml.text);
    return status;
}
