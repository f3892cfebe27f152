"""The pages that a person looks at, drawn on the server.

What is here:

- `views/`: what each page shows, as frozen dataclasses; one file per page (see its docstring).
  `cascade_lines`, `cascade_view`, `savings_view`, `disagreements_view`, `labels_view`,
  `health_view`, `mode_view`, `keys_view`. They block: `rendering.page` runs them in a thread.
- `rendering`: `page(request, template, view, **more)` checks the scope, runs the view function in a
  thread, renders a template with autoescape, and gives templates their filters: `amount`
  (a cost), `share` (in percent), `when` (a time), and the globals `nav`, `key`, `csp`-safe links.
- `login`: sessions opened with a key; `GET /ui/login`, `POST /ui/login`, `POST /ui/logout`.
- `looking`: the pages, each one async function; `acting`: what their forms do; `routes`: where each
  of them is.
- `drawing`: the pictures, SVG made from numbers.
- `templates/base.html`: head, navigation, the blocks `title` and `content`.
- `static/style.css`: colours for light and dark as variables, tables, cards, buttons, forms.
  Served under `/ui/static/` with an hour of caching.

Rules that hold for every page:

- The Content-Security-Policy is `default-src 'self'`: no inline script, no inline style (not even
  `style="..."`; SVG uses classes and presentation attributes), nothing from another host.
- What models said and what clients sent is plain text in `<pre>`; `|safe` is used on SVG that we
  drew from numbers alone.
- Forms are `POST` from our own origin (`http/access.refuse_other_sites`), with `SameSite=Strict`.
- Scopes: looking needs `read`, labelling `label`, modes and keys `admin`.
"""
