/* Recipes: a list of columns and their roles, and the same as text. The text is also a table, so that one parser reads
 * both. Names and texts are prefixed with a colon there, which keeps "NA" and "7" from being read as a missing value
 * and a number. */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "series.h"

/* ----------------------------------------------------------------- columns - */

static char *recipe_copy_text(const char *text)
{
    const size_t length = strlen(text) + 1;
    char *copy = malloc(length);
    if (copy) memcpy(copy, text, length);
    return copy;
}

mica_status mica__recipe_add(mica_recipe *r, recipe_role role, const char *name, recipe_column **out)
{
    if (r->n == r->room) {
        const int64_t room = r->room ? 2 * r->room : 16;
        recipe_column *columns = realloc(r->columns, (size_t)room * sizeof *columns);
        if (!columns) return mica_fail(MICA_ERR_MEMORY, "out of memory: a recipe of %lld columns", (long long)room);
        r->columns = columns;
        r->room = room;
    }
    recipe_column *c = &r->columns[r->n];
    *c = (recipe_column){.role = role, .scale = 1, .name = recipe_copy_text(name)};
    if (!c->name) return mica_fail(MICA_ERR_MEMORY, "out of memory: a column's name");
    r->n++;
    r->targets += role == RECIPE_TARGET;
    if (out) *out = c;
    return MICA_OK;
}

int64_t mica__recipe_text_find(const recipe_column *c, const char *text)
{
    for (int64_t i = 0; i < c->n_texts; i++)
        if (strcmp(c->texts[i], text) == 0) return i;
    return -1;
}

mica_status mica__recipe_text_add(recipe_column *c, const char *text)
{
    char **texts = realloc(c->texts, ((size_t)c->n_texts + 1) * sizeof *texts);
    if (texts) c->texts = texts;
    char *copy = texts ? recipe_copy_text(text) : NULL;
    if (!copy) return mica_fail(MICA_ERR_MEMORY, "out of memory: a category");
    c->texts[c->n_texts++] = copy;
    return MICA_OK;
}

const recipe_column *mica__recipe_role(const mica_recipe *r, recipe_role role)
{
    for (int64_t i = 0; i < r->n; i++)
        if (r->columns[i].role == role) return &r->columns[i];
    return NULL;
}

const char *mica__cell_category(const mica_table *t, int64_t row, int64_t column, char at[MICA_NUMBER_TEXT])
{
    const char *text = mica_table_text(t, row, column);
    const double number = mica_table_number(t, row, column);
    return text || isnan(number) ? text : mica_number_print(number, at, MICA_NUMBER_TEXT);
}

void mica_recipe_free(mica_recipe *recipe)
{
    if (!recipe) return;
    for (int64_t i = 0; i < recipe->n; i++) {
        for (int64_t k = 0; k < recipe->columns[i].n_texts; k++) free(recipe->columns[i].texts[k]);
        free(recipe->columns[i].texts);
        free(recipe->columns[i].name);
    }
    free(recipe->columns);
    free(recipe);
}

/* ----------------------------------------------------------------- asking -- */

int64_t mica_recipe_inputs(const mica_recipe *recipe)
{
    int64_t n = 0;
    for (int64_t i = 0; recipe && i < recipe->n; i++) {
        const recipe_column *c = &recipe->columns[i];
        n += c->role == RECIPE_NUMBER ? 1 : c->role == RECIPE_CATEGORY ? c->n_texts : 0;
    }
    return n;
}

static const recipe_column *recipe_target_column(const mica_recipe *r, int64_t target)
{
    for (int64_t i = 0; r && i < r->n; i++)
        if (r->columns[i].role == RECIPE_TARGET && target-- == 0) return &r->columns[i];
    return NULL;
}

int64_t mica_recipe_targets(const mica_recipe *recipe) { return recipe ? recipe->targets : 0; }
int64_t mica_recipe_ahead(const mica_recipe *recipe) { return recipe ? recipe->ahead : 0; }
int64_t mica_recipe_seq(const mica_recipe *recipe) { return recipe ? recipe->seq : 0; }

int64_t mica_recipe_classes(const mica_recipe *recipe)
{
    if (!recipe || recipe->task != MICA_TASK_CLASSES) return 0;
    return recipe_target_column(recipe, 0)->n_texts;
}

bool mica_recipe_knows_time(const mica_recipe *recipe)
{
    return recipe && (mica__recipe_role(recipe, RECIPE_TIME) || mica__recipe_role(recipe, RECIPE_SPAN));
}

const char *mica_recipe_target(const mica_recipe *recipe, int64_t i)
{
    const recipe_column *c = i < 0 ? NULL : recipe_target_column(recipe, i);
    return c ? c->name : NULL;
}

const char *mica_recipe_class(const mica_recipe *recipe, int64_t i)
{
    return i >= 0 && i < mica_recipe_classes(recipe) ? recipe_target_column(recipe, 0)->texts[i] : NULL;
}

void mica_recipe_scale(const mica_recipe *recipe, int64_t target, double *scale, double *shift)
{
    const recipe_column *c = target < 0 ? NULL : recipe_target_column(recipe, target);
    *scale = c ? c->scale : 1;
    *shift = c ? c->mean : 0;
}

/* ---------------------------------------------------------------- as text -- */

static const char *const recipe_roles[] = {
    [RECIPE_NUMBER] = "number", [RECIPE_CATEGORY] = "category", [RECIPE_TARGET] = "target",
    [RECIPE_GROUP] = "group",   [RECIPE_TIME] = "time",         [RECIPE_SPAN] = "span"};
enum { RECIPE_ROLES = sizeof recipe_roles / sizeof recipe_roles[0], RECIPE_SETTINGS = 4 };

static const char *const recipe_settings[RECIPE_SETTINGS] = {"seq", "ahead", "task", "missing"};

/* Text that does not fit is counted, not written. */
typedef struct recipe_printer {
    char *text;
    size_t n, room;
} recipe_printer;

static void recipe_put(recipe_printer *p, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++, p->n++)
        if (p->n + 1 < p->room) p->text[p->n] = text[i];
}

static void recipe_put_text(recipe_printer *p, const char *text)
{
    recipe_put(p, "\":", 2);
    for (; *text; text++) recipe_put(p, *text == '"' ? "\"\"" : text, *text == '"' ? 2 : 1);
    recipe_put(p, "\"", 1);
}

/* role,:name,mean,scale */
static void recipe_put_row(recipe_printer *p, const char *role, const char *name, double mean, double scale)
{
    recipe_put(p, role, strlen(role));
    recipe_put(p, ",", 1);
    recipe_put_text(p, name);
    for (int i = 0; i < 2; i++) {
        char number[MICA_NUMBER_TEXT];
        recipe_put(p, ",", 1);
        (void)mica_number_print(i ? scale : mean, number, sizeof number);
        recipe_put(p, number, strlen(number));
    }
    recipe_put(p, "\n", 1);
}

size_t mica_recipe_text(const mica_recipe *recipe, char *buffer, size_t cap)
{
    recipe_printer p = {.text = buffer, .room = buffer ? cap : 0};
    if (!recipe) return 0;
    const double settings[RECIPE_SETTINGS] = {(double)recipe->seq, (double)recipe->ahead, (double)recipe->task,
                                              (double)recipe->missing};
    static const char head[] = "role,name,mean,scale\n";
    recipe_put(&p, head, sizeof head - 1);
    for (int i = 0; i < RECIPE_SETTINGS; i++) recipe_put_row(&p, "setting", recipe_settings[i], settings[i], 1);
    for (int64_t i = 0; i < recipe->n; i++) {
        const recipe_column *c = &recipe->columns[i];
        recipe_put_row(&p, recipe_roles[c->role], c->name, c->mean, c->scale);
        for (int64_t k = 0; k < c->n_texts; k++) recipe_put_row(&p, "text", c->texts[k], 0, 1);
    }
    if (p.room) buffer[p.n < p.room ? p.n : p.room - 1] = '\0';
    return p.n;
}

static int recipe_word(const char *text, const char *const *words, int n)
{
    for (int i = 0; i < n && text; i++)
        if (strcmp(words[i], text) == 0) return i;
    return -1;
}

/* Reads one row of the text; false: the row is malformed. */
static bool recipe_read_row(mica_recipe *r, const mica_table *t, int64_t row, mica_status *status)
{
    const char *role = mica_table_text(t, row, 0), *name = mica_table_text(t, row, 1);
    const double mean = mica_table_number(t, row, 2), scale = mica_table_number(t, row, 3);
    if (!role || !name || name[0] != ':' || !isfinite(mean) || !(scale > 0)) return false;
    if (strcmp(role, "setting") == 0) {
        const int which = recipe_word(name + 1, recipe_settings, RECIPE_SETTINGS);
        if (!(mean >= 0 && mean <= 1e9) || mean != floor(mean)) return false;
        if (which == 0) r->seq = (int64_t)mean;
        if (which == 1) r->ahead = (int64_t)mean;
        if (which == 2) r->task = mean == (double)MICA_TASK_CLASSES ? MICA_TASK_CLASSES : MICA_TASK_REGRESSION;
        if (which == 3)
            r->missing = mean <= (double)MICA_MISSING_REFUSE ? (mica_series_missing)(int)mean : MICA_MISSING_LAST;
        return which >= 0;
    }
    if (strcmp(role, "text") == 0) {
        recipe_column *c = r->n ? &r->columns[r->n - 1] : NULL;
        if (!c || (c->role != RECIPE_CATEGORY && c->role != RECIPE_TARGET)) return false;
        *status = mica__recipe_text_add(c, name + 1);
        return true;
    }
    const int which = recipe_word(role, recipe_roles, RECIPE_ROLES);
    recipe_column *c;
    if (which < 0) return false;
    *status = mica__recipe_add(r, (recipe_role)which, name + 1, &c);
    if (*status == MICA_OK) c->mean = mean, c->scale = scale;
    return true;
}

static bool recipe_is_whole(const mica_recipe *r)
{
    if (r->seq < 1 || r->targets < 1 || mica_recipe_inputs(r) < 1) return false;
    const int64_t classes = recipe_target_column(r, 0)->n_texts;
    return r->task == MICA_TASK_CLASSES ? classes >= 2 && r->targets == 1 : classes == 0;
}

mica_status mica_recipe_parse(const char *text, size_t length, mica_recipe **out)
{
    mica_table *t;
    mica_table_options o;
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "recipe: out is NULL");
    *out = NULL;
    mica_table_options_init(&o);
    o.delimiter = ',';
    o.header = 1;
    mica_status status = mica_table_parse("recipe", text, length, &o, &t);
    if (status != MICA_OK) return status;
    mica_recipe *r = calloc(1, sizeof *r);
    if (!r) status = mica_fail(MICA_ERR_MEMORY, "out of memory: a recipe");
    for (int64_t row = 0; status == MICA_OK && row < t->rows; row++)
        if (!recipe_read_row(r, t, row, &status))
            status = mica_fail(MICA_ERR_FORMAT, "recipe, line %lld: not a line of a recipe",
                               (long long)mica_table_line(t, row));
    if (status == MICA_OK && !recipe_is_whole(r))
        status = mica_fail(MICA_ERR_FORMAT, "recipe: targets, inputs, classes or the sequence length is missing");
    mica_table_free(t);
    if (status == MICA_OK) *out = r;
    else mica_recipe_free(r);
    return status;
}

mica_status mica_recipe_copy(const mica_recipe *recipe, mica_recipe **out)
{
    if (!out) return mica_fail(MICA_ERR_ARGUMENT, "recipe: out is NULL");
    *out = NULL;
    if (!recipe) return mica_fail(MICA_ERR_ARGUMENT, "recipe: recipe is NULL");
    const size_t length = mica_recipe_text(recipe, NULL, 0);
    char *text = malloc(length + 1);
    if (!text) return mica_fail(MICA_ERR_MEMORY, "out of memory: a recipe");
    (void)mica_recipe_text(recipe, text, length + 1);
    const mica_status status = mica_recipe_parse(text, length, out);
    free(text);
    return status;
}
