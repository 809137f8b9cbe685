// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"bytes"
	"embed"
	"fmt"
	"html/template"
	"net/http"
	"strings"

	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

//go:embed pages/*.html static/*
var files embed.FS

// maxText limits the bytes of untrusted text.
const maxText = 2000

// plain makes untrusted text safe for a page: it removes control and bidirectional characters.
func plain(text string) string { return untrusted.Excerpt(text, maxText) }

// templates parses the pages. Each consists of the layout and the blocks of one file.
func templates() (map[string]*template.Template, error) {
	functions := template.FuncMap{"plain": plain, "lower": strings.ToLower}
	all := map[string]*template.Template{}
	for _, name := range []string{"fleet", "member", "placements", "placement", "runs", "confirm", "search", "pod", "problems", "failed"} {
		t, err := template.New("layout.html").Funcs(functions).ParseFS(files, "pages/layout.html", "pages/parts.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("parsing page %s: %w", name, err)
		}
		all[name] = t
	}
	return all, nil
}

// page is the data of a page.
type page struct {
	Title, Here string
	// Follow is the query of a search whose changes the page follows, in addition to members,
	// placements and runs.
	Follow string
	// Form is the token of forms that write.
	Form string
	Data any
}

// render writes a page, or an error if the page cannot be rendered completely.
func (c *Console) render(w http.ResponseWriter, name string, code int, p page) {
	var b bytes.Buffer
	p.Form = c.form
	if err := c.pages[name].Execute(&b, p); err != nil {
		http.Error(w, "Rendering the page failed: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // The browser may have closed the connection.
}
