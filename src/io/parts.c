/* Models in several files. Each file is mapped and read like a single file; its tensors are
 * appended to those of the model. */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "io/model_build.h"

mica_status mica__parts_room(mica__file *file, int n)
{
    mica__map *maps = mica__realloc(file->maps, (size_t)n * sizeof *maps);
    if (maps) file->maps = maps;
    char **paths = maps ? mica__realloc(file->map_paths, (size_t)n * sizeof *paths) : NULL;
    if (!paths) return mica__fail_memory("the files of a model", (size_t)n * sizeof *maps);
    file->map_paths = paths;
    return MICA_OK;
}

mica_status mica__part_open(mica__file *file, char *path, int n)
{
    const mica_status status = mica__file_map(file, path, &file->maps[file->n_maps]);
    if (status != MICA_OK) {
        char text[MICA__ERROR_TEXT];
        snprintf(text, sizeof text, "%s", mica_last_error());
        mica__free(path);
        return mica__fail(status, "%s: one of the %d files it names is missing: %s", file->path, n, text);
    }
    file->map_paths[file->n_maps++] = path;
    return MICA_OK;
}

static mica_status append_tensors(mica__file *file, const mica__file *part, int map)
{
    for (size_t k = 0; k < part->n_tensors; k++) {
        mica__stored *t = NULL;
        const char *name = part->tensors[k].name;
        MICA_TRY(mica__build_tensor(file, &t));
        *t = part->tensors[k];
        t->map = map;
        t->name = "";
        MICA_TRY(mica__build_name(file, "tensor name", name, strlen(name), &t->name));
    }
    return MICA_OK;
}

mica_status mica__part_read(mica__file *file, int map, mica_status (*read)(mica__file *file, int map),
                            mica__part_check_fn *look, const void *user)
{
    mica__file part = {.path = file->map_paths[map], .seed = file->seed, .options = file->options};
    mica__map copy = file->maps[map];
    part.maps = &copy;
    part.n_maps = 1;
    mica__arena_init(&part.arena);
    mica_status status = read(&part, 0);
    if (status == MICA_OK) status = mica__build_tables(&part);
    if (status == MICA_OK && look) status = look(&part, map, user);
    if (status == MICA_OK) status = append_tensors(file, &part, map);
    mica__free(part.tensors);
    mica__free(part.meta);
    mica__free(part.tensor_names.slot);
    mica__free(part.meta_names.slot);
    mica__arena_free(&part.arena);
    return status;
}
