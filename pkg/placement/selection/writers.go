// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// isController reports whether a field manager is one of Kubernetes' own controllers, or of OpenShift's.
// The API server is one too: it maintains default roles, FlowSchemas, PriorityClasses and the APIServices
// of definitions. Others may be an author's tools, such as a GitOps controller.
func isController(manager string) bool {
	switch manager {
	case "kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver",
		"clusterrole-aggregation-controller", "api-priority-and-fairness-config-producer-v1",
		"openshift-controller-manager", "cluster-policy-controller":
		return true
	}
	return strings.HasSuffix(manager, "cloud-controller-manager")
}

// isAutoscaler reports whether a field manager that writes the scale of workloads is an autoscaler.
func isAutoscaler(manager string) bool {
	return isController(manager) || strings.Contains(manager, "keda") || strings.Contains(manager, "autoscaler")
}

// writer is a field manager with the fields that it owns.
type writer struct {
	manager string
	// scale is true if it wrote the subresource scale.
	scale  bool
	fields *fieldpath.Set
}

// writers are the field managers of an object, without those of its status. There are none if they are
// unknown.
type writers []writer

// writersOf skips unreadable entries, because the API server wrote all of them.
func writersOf(object metav1.Object) writers {
	var all writers
	for _, entry := range object.GetManagedFields() {
		if entry.Subresource == "status" || entry.FieldsV1 == nil {
			continue
		}
		fields := &fieldpath.Set{}
		if err := fields.FromJSON(entry.FieldsV1.GetRawReader()); err == nil {
			all = append(all, writer{manager: entry.Manager, scale: entry.Subresource == "scale", fields: fields})
		}
	}
	return all
}

// hasController reports whether a controller wrote anything but the status. Reading the owner of each
// field takes longer.
func hasController(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource != "status" && isController(entry.Manager)
	})
}

// hasScale reports whether the subresource scale was written.
func hasScale(object metav1.Object) bool {
	return slices.ContainsFunc(object.GetManagedFields(), func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource == "scale" })
}

// authored reports whether anybody but a controller owns a field, or something in it.
func (w writers) authored(path ...any) bool {
	for _, writer := range w {
		if !isController(writer.manager) && !(writer.scale && isAutoscaler(writer.manager)) && owns(writer.fields, path) {
			return true
		}
	}
	return false
}

// allocated reports whether only the API server and controllers are known to set a field.
func (w writers) allocated(path ...any) bool { return len(w) > 0 && !w.authored(path...) }

// autoscaled reports whether an autoscaler, and no author, owns the number of replicas.
func (w writers) autoscaled() bool {
	for _, writer := range w {
		if writer.scale && isAutoscaler(writer.manager) && owns(writer.fields, []any{"spec", "replicas"}) {
			return !w.authored("spec", "replicas")
		}
	}
	return false
}

// onlyControllers reports whether only controllers wrote the content of the object, except its
// metadata.
func (w writers) onlyControllers() bool {
	controllers := false
	for _, writer := range w {
		content := false
		writer.fields.Iterate(func(path fieldpath.Path) {
			content = content || path[0].FieldName == nil || *path[0].FieldName != "metadata"
		})
		switch {
		case !content:
		case isController(writer.manager):
			controllers = true
		default:
			return false
		}
	}
	return controllers
}

func owns(fields *fieldpath.Set, parts []any) bool {
	path, err := fieldpath.MakePath(parts...)
	if err != nil || len(path) == 0 {
		return false
	}
	last := path[len(path)-1]
	for _, element := range path[:len(path)-1] {
		fields = fields.WithPrefix(element)
	}
	return fields.Members.Has(last) || !fields.WithPrefix(last).Empty()
}

// onlyControllersOf decides the same from the names of the managers alone, without those of the status.
func onlyControllersOf(object metav1.Object) bool {
	only := false
	for _, entry := range object.GetManagedFields() {
		switch {
		case entry.Subresource == "status":
		case isController(entry.Manager):
			only = true
		default:
			return false
		}
	}
	return only
}
