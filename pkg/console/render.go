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

	"fleetgate.io/fleetgate/pkg/plugin/why"
)

//go:embed pages/*.html static/*
var files embed.FS

// maxText is how many letters of a text of others a page has.
const maxText = 2000

// plain is a text of others as pages have it: without what moves or turns what is beside it.
func plain(text string) string {
	text = why.Plain(text)
	if letters := []rune(text); len(letters) > maxText {
		return string(letters[:maxText]) + "..."
	}
	return text
}

// templates parses the pages. Each is layout with the blocks of one file.
func templates() (map[string]*template.Template, error) {
	functions := template.FuncMap{"plain": plain, "lower": strings.ToLower}
	all := map[string]*template.Template{}
	for _, name := range []string{"fleet", "member", "placements", "placement", "runs", "confirm", "across", "pod", "wrong", "failed"} {
		t, err := template.New("layout.html").Funcs(functions).ParseFS(files, "pages/layout.html", "pages/parts.html", "pages/"+name+".html")
		if err != nil {
			return nil, fmt.Errorf("reading page %s: %w", name, err)
		}
		all[name] = t
	}
	return all, nil
}

// page is what every page has, with what is on it.
type page struct {
	Title, Here string
	// Follow is what else than members, placements and runs the page is to hear of: the
	// query of what it shows.
	Follow string
	// Form is the text in forms that write.
	Form string
	Data any
}

// render writes a page, or nothing of it if it cannot be made.
func (c *Console) render(w http.ResponseWriter, name string, code int, p page) {
	var b bytes.Buffer
	p.Form = c.form
	if err := c.pages[name].Execute(&b, p); err != nil {
		http.Error(w, "The page could not be made: "+err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(code)
	_, _ = w.Write(b.Bytes()) // Who asked may have gone.
}
