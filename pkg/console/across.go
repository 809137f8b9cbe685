// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
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
	Rows                               []row
	// NameAt is the column with objects' names.
	NameAt   int
	Warnings []string
	Problem  string
	More     bool
}

// row is an object; Link leads to its own page, if it has one.
type row struct {
	Link  string
	Cells []string
}

// lookOf reads what somebody wants to see.
func lookOf(q url.Values) *look {
	l := &look{Kind: q.Get("kind"), Namespace: q.Get("namespace"), Selector: q.Get("selector"), Members: q.Get("members"), Kinds: slices.Sorted(maps.Keys(kinds))}
	if kinds[l.Kind] == "" {
		l.Kind = "pods"
	}
	return l
}

// across is one kind over many members, by the view of the fleet, as the user.
func (c *Console) across(w http.ResponseWriter, r *http.Request) {
	l := lookOf(r.URL.Query())
	if err := c.fill(r, l); err != nil {
		l.Problem = err.Error()
	}
	follow := url.Values{"kind": {l.Kind}, "namespace": {l.Namespace}, "selector": {l.Selector}, "members": {l.Members}}
	c.render(w, "across", http.StatusOK, page{Title: "Look across", Here: "across", Follow: follow.Encode(), Data: l})
}

// request is where and how what is looked for is asked for.
func (l *look) request() (to memberconfig.Target, params map[string]string, path []string, err error) {
	view := ""
	if l.Members != "" {
		view = "labels:" + strings.ReplaceAll(l.Members, "/", ":")
	}
	if to, err = memberconfig.View(view); err != nil {
		return to, nil, nil, err
	}
	params = map[string]string{}
	if l.Selector != "" {
		params["labelSelector"] = l.Selector
	}
	path = []string{strings.TrimPrefix(kinds[l.Kind], "/")}
	if l.Namespace != "" && l.Kind != "nodes" {
		if problems := validation.IsDNS1123Label(l.Namespace); len(problems) > 0 {
			return to, nil, nil, fmt.Errorf("%q is no namespace: %s", l.Namespace, problems[0])
		}
		path = append(path, "namespaces", l.Namespace)
	}
	return to, params, append(path, l.Kind), nil
}

func (c *Console) fill(r *http.Request, l *look) error {
	to, params, path, err := l.request()
	if err != nil {
		return err
	}
	params["limit"] = strconv.Itoa(maxRows)
	table, warnings, err := c.Hub.GetTable(r.Context(), to, params, path...)
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
	cluster := -1
	for i, column := range table.ColumnDefinitions {
		if column.Name == "Cluster" && cluster < 0 {
			cluster = i
		}
		if column.Priority == 0 {
			shown = append(shown, i)
			l.Columns = append(l.Columns, column.Name)
		}
	}
	l.Columns = append([]string{"Namespace"}, l.Columns...)
	l.NameAt = slices.Index(l.Columns, "Name")
	for i := range table.Rows {
		var object metav1.PartialObjectMetadata
		_ = json.Unmarshal(table.Rows[i].Object.Raw, &object) // A row without a name is shown without.
		one := row{Cells: []string{object.Namespace}}
		for _, at := range shown {
			if at < len(table.Rows[i].Cells) {
				one.Cells = append(one.Cells, fmt.Sprint(table.Rows[i].Cells[at]))
			}
		}
		if l.Kind == "pods" && cluster >= 0 && cluster < len(table.Rows[i].Cells) {
			of := url.Values{"member": {fmt.Sprint(table.Rows[i].Cells[cluster])}, "namespace": {object.Namespace}, "name": {object.Name}}
			one.Link = "/pod?" + of.Encode()
		}
		l.Rows = append(l.Rows, one)
	}
	l.More = table.Continue != ""
}
