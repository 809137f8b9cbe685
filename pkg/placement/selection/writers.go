// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package selection

import (
	"bytes"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"
)

// isController reports whether a field manager is one of Kubernetes' own controllers, or of OpenShift's.
// The API server is one too: it maintains default roles, FlowSchemas, PriorityClasses and the APIServices
// of definitions. Others may be an author's tools, such as a GitOps controller.
func isController(manager string) bool {
	switch manager {
	case "kube-controller-manager", "kube-scheduler", "kubelet", "kube-apiserver",
		"clusterrole-aggregation-controller", "api-priority-and-fairness-config-producer-v1",
		"snapshot-controller", "csi-snapshotter",
		"openshift-controller-manager", "cluster-policy-controller",
		"pod-security-admission-label-synchronization-controller":
		return true
	}
	return strings.HasSuffix(manager, "cloud-controller-manager") || strings.HasSuffix(manager, "cloud-provider")
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
func writersOf(entries []metav1.ManagedFieldsEntry) writers {
	var all writers
	for _, entry := range entries {
		if entry.Subresource == statusResource {
			continue
		}
		if fields := fieldsOf(entry); fields != nil {
			all = append(all, writer{manager: entry.Manager, scale: entry.Subresource == "scale", fields: fields})
		}
	}
	return all
}

// statusResource is the subresource that controllers write.
const statusResource = "status"

// fieldsOf returns the fields of an entry; nil if they cannot be read.
func fieldsOf(entry metav1.ManagedFieldsEntry) *fieldpath.Set {
	fields := &fieldpath.Set{}
	if entry.FieldsV1 == nil || fields.FromJSON(entry.FieldsV1.GetRawReader()) != nil {
		return nil
	}
	return fields
}

// hasController reports whether a controller wrote anything but the status. Reading the owner of each
// field takes longer.
func hasController(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource != statusResource && isController(entry.Manager)
	})
}

// hasScale reports whether the subresource scale was written.
func hasScale(entries []metav1.ManagedFieldsEntry) bool {
	return slices.ContainsFunc(entries, func(entry metav1.ManagedFieldsEntry) bool { return entry.Subresource == "scale" })
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

// injected reports whether only injectors own the certificate authority of a webhook: they own neither its
// service nor its URL, and are no clients of people.
func (w writers) injected(clientConfig ...any) bool {
	injected := false
	in := func(field string) []any { return append(slices.Clone(clientConfig), field) }
	for _, writer := range w {
		if !owns(writer.fields, in("caBundle")) {
			continue
		}
		if strings.HasPrefix(writer.manager, "kubectl") || owns(writer.fields, in("service")) || owns(writer.fields, in("url")) {
			return false
		}
		injected = true
	}
	return injected
}

// onlyControllers reports whether only controllers wrote the content of the object, except its
// metadata.
func (w writers) onlyControllers() bool {
	controllers := false
	for _, writer := range w {
		switch {
		case !writer.hasContent():
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
		case entry.Subresource == statusResource:
		case isController(entry.Manager):
			only = true
		default:
			return false
		}
	}
	return only
}

// madeForOwner reports whether only managers that set its owner references wrote an object's content: its
// controller created it for its owner, without being marked as the controller. With kubectl, an author did.
// Metadata counts as content if there is nothing else, as in a ServiceAccount.
func madeForOwner(object metav1.Object) bool {
	if len(object.GetOwnerReferences()) == 0 {
		return false
	}
	owning, writing := map[string]bool{}, map[string]bool{}
	for _, writer := range writersOf(object.GetManagedFields()) {
		if owns(writer.fields, []any{"metadata", "ownerReferences"}) {
			if strings.HasPrefix(writer.manager, "kubectl") {
				return false
			}
			owning[writer.manager] = true
		}
		if writer.hasContent() {
			writing[writer.manager] = true
		}
	}
	for manager := range writing {
		if !owning[manager] {
			return false
		}
	}
	return len(owning) > 0
}

// hasContent reports whether the writer owns anything but metadata and status.
func (w writer) hasContent() bool {
	found := false
	w.fields.Iterate(func(path fieldpath.Path) {
		field := path[0].FieldName
		found = found || field == nil || *field != "metadata" && *field != "status"
	})
	return found
}

// controllerKeys returns the annotations or labels that only controllers own. With reporters, a manager
// counts as one that wrote the status and nothing else but metadata.
func controllerKeys(entries []metav1.ManagedFieldsEntry, field string, reporters bool) sets.Set[string] {
	controllers, authors := sets.Set[string]{}, sets.Set[string]{}
	mark := []byte(`"f:` + field + `"`)
	for _, entry := range entries {
		if entry.FieldsV1 == nil || !bytes.Contains(entry.FieldsV1.GetRawBytes(), mark) {
			continue
		}
		fields := fieldsOf(entry)
		if fields == nil {
			continue
		}
		into := authors
		if isController(entry.Manager) || reporters && isReporter(entry.Manager, entries) {
			into = controllers
		}
		for _, name := range []string{"metadata", field} {
			fields = fields.WithPrefix(fieldpath.PathElement{FieldName: &name})
		}
		fields.Members.Iterate(func(key fieldpath.PathElement) {
			if key.FieldName != nil {
				into.Insert(*key.FieldName)
			}
		})
	}
	return controllers.Difference(authors)
}

// isReporter reports whether a manager wrote the status of the object and nothing else but metadata.
func isReporter(manager string, entries []metav1.ManagedFieldsEntry) bool {
	if strings.HasPrefix(manager, "kubectl") {
		return false
	}
	own := slices.DeleteFunc(slices.Clone(entries), func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Manager != manager
	})
	reports := func(entry metav1.ManagedFieldsEntry) bool {
		return entry.Subresource == statusResource ||
			entry.FieldsV1 != nil && bytes.Contains(entry.FieldsV1.GetRawBytes(), []byte(`"f:status"`))
	}
	return slices.ContainsFunc(own, reports) && !slices.ContainsFunc(own, func(entry metav1.ManagedFieldsEntry) bool {
		fields := fieldsOf(entry)
		return entry.Subresource != statusResource && (fields == nil || (writer{fields: fields}).hasContent())
	})
}
