// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"fleetgate.io/fleetgate/pkg/memberconfig"
)

// maxRows is how many objects a page shows.
const maxRows = 500

// kinds are those that one looks for across a fleet, with their paths.
var kinds = map[string]string{
	"pods": "/api/v1", "events": "/api/v1", "nodes": "/api/v1", "services": "/api/v1", "configmaps": "/api/v1", "persistentvolumeclaims": "/api/v1",
	"deployments": "/apis/apps/v1", "statefulsets": "/apis/apps/v1", "daemonsets": "/apis/apps/v1", "jobs": "/apis/batch/v1", "ingresses": "/apis/networking.k8s.io/v1",
}

// look is what somebody wants to see across members, and what came of it.
type look struct {
	Kind, Namespace, Selector, Members string
	Kinds, Columns                     []string
	Rows                               [][]string
	Warnings                           []string
	Problem                            string
	More                               bool
}

// across is one kind over many members, by the view of the fleet, as the user.
func (c *Console) across(w http.ResponseWriter, r *http.Request) {
	q := r.URL.Query()
	l := &look{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Selector: q.Get("selector"), Members: q.Get("members"), Kinds: slices.Sorted(maps.Keys(kinds))}
	if kinds[l.Kind] == "" {
		l.Kind = "pods"
	}
	if err := c.fill(r, l); err != nil {
		l.Problem = err.Error()
	}
	c.render(w, "across", http.StatusOK, page{Title: "Look across", Here: "across", Data: l})
}

func (c *Console) fill(r *http.Request, l *look) error {
	view := ""
	if l.Members != "" {
		view = "labels:" + strings.ReplaceAll(l.Members, "/", ":")
	}
	to, err := memberconfig.View(view)
	if err != nil {
		return err
	}
	params := map[string]string{"limit": strconv.Itoa(maxRows)}
	if l.Selector != "" {
		params["labelSelector"] = l.Selector
	}
	path := []string{strings.TrimPrefix(kinds[l.Kind], "/")}
	if l.Namespace != "" && l.Kind != "nodes" {
		if problems := validation.IsDNS1123Label(l.Namespace); len(problems) > 0 {
			return fmt.Errorf("%q is no namespace: %s", l.Namespace, problems[0])
		}
		path = append(path, "namespaces", l.Namespace)
	}
	table, warnings, err := c.Hub.GetTable(r.Context(), to, params, append(path, l.Kind)...)
	l.Warnings = warnings
	if err != nil {
		return fmt.Errorf("looking for %s: %w", l.Kind, err)
	}
	l.take(table)
	return nil
}

// take has the columns that kubectl shows without being asked for more.
func (l *look) take(table *metav1.Table) {
	var shown []int
	for i, column := range table.ColumnDefinitions {
		if column.Priority == 0 {
			shown = append(shown, i)
			l.Columns = append(l.Columns, column.Name)
		}
	}
	l.Columns = append([]string{"Namespace"}, l.Columns...)
	for i := range table.Rows {
		var object metav1.PartialObjectMetadata
		_ = json.Unmarshal(table.Rows[i].Object.Raw, &object) // A row without a name is shown without.
		row := []string{object.Namespace}
		for _, at := range shown {
			if at < len(table.Rows[i].Cells) {
				row = append(row, fmt.Sprint(table.Rows[i].Cells[at]))
			}
		}
		l.Rows = append(l.Rows, row)
	}
	l.More = table.Continue != ""
}
