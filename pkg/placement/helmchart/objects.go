// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package helmchart

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/work/manifest"
	"fleetgate.io/fleetgate/pkg/work/reserved"
)

const (
	// maxObjects limits the objects of one chart.
	maxObjects = 1000
	// maxBytes limits their total size: they go into one Work, which has to fit into etcd with the
	// member's status of each.
	maxBytes = 1 << 20
)

// Object is one object of a rendered chart.
type Object struct {
	// Template is the file of the chart that it comes from.
	Template string `json:"template"`
	// JSON is the object.
	JSON json.RawMessage `json:"object"`
}

// Scopes returns whether objects of a kind are namespaced; known is false if that is unknown. An
// error means that this could not be determined.
type Scopes func(schema.GroupVersionKind) (namespaced, known bool, err error)

// Problem is an error of a chart, or its values, that its author has to fix. It is only data: it
// comes as JSON from the rendering process, a later caller adds the name of the chart, and the
// final caller decides what is refused because of it.
type Problem struct {
	// Chart is its name and version, or empty if they were not read.
	Chart string `json:"chart,omitempty"`
	// Where is the file with the line, if there is one.
	Where string `json:"where,omitempty"`
	What  string `json:"what"`
}

// Error formats all of it.
func (p *Problem) Error() string {
	text := p.What
	if p.Where != "" {
		text = p.Where + ": " + text
	}
	if p.Chart != "" {
		text = "chart " + p.Chart + ": " + text
	}
	return text
}

// manifestsOf adds namespaces to objects, as Helm does, and checks what may be placed.
func manifestsOf(r *Release, chart string, objects []Object, scopes Scopes) ([]placementv1beta1.Manifest, error) {
	if len(objects) > maxObjects {
		return nil, &Problem{Chart: chart, What: fmt.Sprintf("it renders to %d objects, the limit is %d: divide it", len(objects), maxObjects)}
	}
	p := placing{release: r, chart: chart, scopes: scopes, own: map[schema.GroupKind]bool{}, from: map[manifest.Key]string{}}
	read := make([]*unstructured.Unstructured, len(objects))
	for i, o := range objects {
		object := &unstructured.Unstructured{}
		if err := object.UnmarshalJSON(o.JSON); err != nil {
			return nil, &Problem{Chart: chart, Where: o.Template, What: "it is no object with apiVersion and kind"}
		}
		read[i] = object
		p.learn(object)
	}
	manifests, size := make([]placementv1beta1.Manifest, 0, len(objects)), 0
	for i, object := range read {
		if err := p.place(object, objects[i].Template); err != nil {
			return nil, err
		}
		raw, err := json.Marshal(object.Object)
		if err != nil {
			return nil, fmt.Errorf("encoding %s %q: %w", object.GetKind(), object.GetName(), err)
		}
		size += len(raw)
		manifests = append(manifests, placementv1beta1.Manifest{RawExtension: runtime.RawExtension{Raw: raw}})
	}
	if size > maxBytes {
		return nil, &Problem{Chart: chart, What: fmt.Sprintf("it renders to %d bytes, the limit is %d: place its CustomResourceDefinitions apart from it", size, maxBytes)}
	}
	return manifests, nil
}

// placing adds namespaces to the objects of one chart.
type placing struct {
	release *Release
	chart   string
	scopes  Scopes
	// own are the kinds that the chart defines itself; true are namespaced ones.
	own map[schema.GroupKind]bool
	// from is the template of each object.
	from map[manifest.Key]string
}

// learn records the scope of a kind that the chart defines.
func (p *placing) learn(object *unstructured.Unstructured) {
	if object.GetKind() != "CustomResourceDefinition" {
		return
	}
	group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
	kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
	scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope")
	p.own[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
}

// place gives an object the release's namespace if it needs one. A kind that neither the chart nor
// the hub defines stays unchanged; only the member knows it.
func (p *placing) place(object *unstructured.Unstructured, template string) error {
	kind := object.GroupVersionKind()
	namespaced, known := p.own[kind.GroupKind()]
	if !known {
		var err error
		if namespaced, known, err = p.scopes(kind); err != nil {
			return fmt.Errorf("looking up %s: %w", kind, err)
		}
	}
	switch {
	case known && !namespaced:
		object.SetNamespace("")
	case known && object.GetNamespace() == "":
		object.SetNamespace(p.release.Namespace)
	}
	name := fmt.Sprintf("%s %q", object.GetKind(), object.GetName())
	problem := func(what string) error { return &Problem{Chart: p.chart, Where: template, What: name + " " + what} }
	if object.GetName() == "" {
		return problem("has no metadata.name")
	}
	if why := reserved.Why(object); why != "" {
		return problem(why)
	}
	if within := p.release.Within; within != "" && object.GetNamespace() != within {
		if object.GetNamespace() == "" {
			return problem(fmt.Sprintf("is in no namespace: a ResourcePlacement places objects of its own only, which is %q", within))
		}
		return problem(fmt.Sprintf("is in namespace %q: a ResourcePlacement places objects of its own only, which is %q", object.GetNamespace(), within))
	}
	key := manifest.Of(object)
	if other, twice := p.from[key]; twice {
		return problem("is in " + other + " too")
	}
	p.from[key] = template
	return nil
}
