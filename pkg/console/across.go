// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package console

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"fleetgate.io/fleetgate/pkg/memberconfig"
	"fleetgate.io/fleetgate/pkg/plugin/hub"
)

// maxRows is how many objects a page shows.
const maxRows = 500

// look is what somebody wants to see across members, and what came of it.
type look struct {
	Kind, Namespace, Selector, Members string
	// Usual and More are the kinds that can be chosen.
	Usual, More []hub.Kind
	Columns     []string
	Rows        []row
	// NameAt is the column with objects' names.
	NameAt   int
	Warnings []string
	Problem  string
	// Cut is true if there are more than Rows.
	Cut bool
	of  hub.Kind
}

// row is an object; Link leads to its own page, if it has one.
type row struct {
	Link  string
	Cells []string
}

// lookOf reads what somebody wants to see.
func (c *Console) lookOf(ctx context.Context, q url.Values) *look {
	l := &look{Kind: cmp.Or(q.Get("kind"), pods), Namespace: q.Get("namespace"), Selector: q.Get("selector"), Members: q.Get("members"), Usual: usual}
	more, err := c.kinds(ctx)
	if err != nil {
		l.Warnings = append(l.Warnings, "Which kinds the fleet has now could not be read: "+err.Error())
	}
	l.More = more
	found := false
	if l.of, found = named(slices.Concat(usual, more), l.Kind); !found {
		l.Problem = fmt.Sprintf("%q is none of the kinds that can be chosen.", l.Kind)
	}
	return l
}

// across is one kind over many members, by the view of the fleet, as the user.
func (c *Console) across(w http.ResponseWriter, r *http.Request) {
	l := c.lookOf(r.Context(), r.URL.Query())
	if l.Problem == "" {
		if err := c.fill(r.Context(), l); err != nil {
			l.Problem = err.Error()
		}
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
	path = []string{l.of.Path}
	if l.Namespace != "" && l.of.Namespaced {
		if problems := validation.IsDNS1123Label(l.Namespace); len(problems) > 0 {
			return to, nil, nil, fmt.Errorf("%q is no namespace: %s", l.Namespace, problems[0])
		}
		path = append(path, "namespaces", l.Namespace)
	}
	return to, params, append(path, l.of.Resource), nil
}

func (c *Console) fill(ctx context.Context, l *look) error {
	to, params, path, err := l.request()
	if err != nil {
		return err
	}
	params["limit"] = strconv.Itoa(maxRows)
	table, warnings, err := c.Hub.GetTable(ctx, to, params, path...)
	l.Warnings = append(l.Warnings, warnings...)
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
		if l.Kind == pods && cluster >= 0 && cluster < len(table.Rows[i].Cells) {
			of := url.Values{"member": {fmt.Sprint(table.Rows[i].Cells[cluster])}, "namespace": {object.Namespace}, "name": {object.Name}}
			one.Link = "/pod?" + of.Encode()
		}
		l.Rows = append(l.Rows, one)
	}
	l.Cut = table.Continue != ""
}
