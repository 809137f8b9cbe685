// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package explain

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
	"fleetgate.io/fleetgate/pkg/kube/untrusted"
)

// ObjectFacts is what was read about an object on a member.
type ObjectFacts struct {
	// Kind is the object's kind or resource as the user wrote it. Mapping is what it resolves
	// to; nil if neither member nor hub could resolve it.
	Kind    string
	Mapping *meta.RESTMapping
	// Namespace is that of the object, if its kind is namespaced.
	Namespace, Name string
	Member          string
	// Works are those of the member, or those that can contain the object.
	Works []placementv1beta1.Work
	// Fields are the live object's managedFields; Unread is why it could not be read.
	Fields []metav1.ManagedFieldsEntry
	Unread error
	// PlacementOf returns the name of the placement of a Work.
	PlacementOf func(metav1.Object) string
}

// Find is a Work that contains an object.
type Find struct {
	Work *placementv1beta1.Work
	// Manifest is what the member reported; without conditions if it has not reported yet.
	Manifest *placementv1beta1.ManifestCondition
}

// isKind reports whether a manifest is of the kind in question.
func (f *ObjectFacts) isKind(id *placementv1beta1.WorkResourceIdentifier) bool {
	if f.Mapping != nil {
		return id.Group == f.Mapping.GroupVersionKind.Group && (id.Kind == f.Mapping.GroupVersionKind.Kind || id.Resource == f.Mapping.Resource.Resource)
	}
	kind, _, _ := strings.Cut(strings.ToLower(f.Kind), ".")
	return kind == strings.ToLower(id.Kind) || kind == strings.ToLower(id.Resource)
}

// Finds returns the Works that contain the object.
func (f *ObjectFacts) Finds() []Find {
	return slices.DeleteFunc(f.named(), func(find Find) bool {
		namespace := find.Manifest.Identifier.Namespace
		return namespace != "" && namespace != f.Namespace
	})
}

// named returns the Works that contain an object of that kind and name in any namespace.
func (f *ObjectFacts) named() []Find {
	var finds []Find
	for i := range f.Works {
		reported := map[int]bool{}
		for j := range f.Works[i].Status.ManifestConditions {
			m := &f.Works[i].Status.ManifestConditions[j]
			reported[m.Identifier.Ordinal] = true
			if f.isKind(&m.Identifier) && m.Identifier.Name == f.Name {
				finds = append(finds, Find{&f.Works[i], m})
			}
		}
		for j := range f.Works[i].Spec.Workload.Manifests {
			if id := identified(&f.Works[i].Spec.Workload.Manifests[j], j); !reported[j] && f.isKind(&id) && id.Name == f.Name {
				finds = append(finds, Find{&f.Works[i], &placementv1beta1.ManifestCondition{Identifier: id}})
			}
		}
	}
	return finds
}

// identified returns the identity of a manifest. One that cannot be decoded matches no request.
func identified(manifest *placementv1beta1.Manifest, ordinal int) placementv1beta1.WorkResourceIdentifier {
	var object metav1.PartialObjectMetadata
	_ = json.Unmarshal(manifest.Raw, &object)
	kind := object.GroupVersionKind()
	return placementv1beta1.WorkResourceIdentifier{Ordinal: ordinal, Group: kind.Group, Version: kind.Version, Kind: kind.Kind, Namespace: object.Namespace, Name: object.Name}
}

// Object returns the origin and the state of an object on a member: first the problem, or that
// there is none, then its placement and snapshot, then who wrote it.
func Object(f *ObjectFacts) (a Problem, wrong bool) {
	finds := f.Finds()
	if len(finds) == 0 {
		return f.foreign(), true
	}
	find := finds[0]
	id := &find.Manifest.Identifier
	a = Problem{
		Object: RefOf(id.Kind, id.Namespace, id.Name), Member: f.Member,
		Of: &placementv1beta1.ResourceIdentifier{Group: id.Group, Version: id.Version, Kind: id.Kind, Namespace: id.Namespace, Name: id.Name},
	}
	placement := f.PlacementOf(find.Work)
	wrong = a.judge(find.Manifest, placement)
	a.Reason = cmp.Or(a.Reason, "no problems found")
	a.Details = append(a.Details, fmt.Sprintf("placed by %s, snapshot %s, in Work %s/%s", cmp.Or(placement, "an unknown placement"),
		cmp.Or(find.Work.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel], "?"), find.Work.Namespace, find.Work.Name))
	for _, other := range finds[1:] {
		a.Details = append(a.Details, fmt.Sprintf("also placed by %s, in Work %s", f.PlacementOf(other.Work), other.Work.Name))
	}
	a.Details = append(a.Details, f.writers()...)
	return a, wrong
}

// maxElsewhere limits the other namespaces that an answer lists.
const maxElsewhere = 3

// foreign is the answer for an object that no Work contains.
func (f *ObjectFacts) foreign() Problem {
	namespace := f.Namespace
	if f.Mapping != nil && f.Mapping.Scope.Name() == meta.RESTScopeNameRoot {
		namespace = ""
	}
	a := Problem{Object: RefOf(f.Kind, namespace, f.Name), Member: f.Member, Reason: "no placement applies this object",
		Remedy: "list the resources of a placement: kubectl fleetgate tree PLACEMENT --member " + f.Member}
	elsewhere := f.named()
	for _, find := range elsewhere[:min(len(elsewhere), maxElsewhere)] {
		a.Details = append(a.Details, fmt.Sprintf("%s applies one in namespace %s: select it with -n %[2]s", f.PlacementOf(find.Work), find.Manifest.Identifier.Namespace))
	}
	a.Details = append(a.Details, f.writers()...)
	return a
}

// judge sets reason and remedy of an answer if a manifest has a problem.
func (a *Problem) judge(m *placementv1beta1.ManifestCondition, placement string) (wrong bool) {
	for _, kind := range []string{placementv1beta1.ConditionApplied, placementv1beta1.ConditionDiffReported, placementv1beta1.ConditionAvailable} {
		if c := meta.FindStatusCondition(m.Conditions, kind); c != nil && c.Status == metav1.ConditionFalse {
			a.Reason, a.Live = failedStage(kind)+c.Message, kind == placementv1beta1.ConditionAvailable
			a.remedyFor(c.Reason, c.Message, placement)
			return true
		}
	}
	switch {
	case m.DriftDetails != nil:
		a.Reason = driftedReason
		a.remedyFor(placementv1beta1.ReasonFoundDrifts, "", placement)
	case len(m.Conditions) == 0:
		a.unreported(placement)
	default:
		return false
	}
	return true
}

// unreported sets the answer for an object or placement that the member has not reported on yet.
func (a *Problem) unreported(placement string) {
	a.Reason = "in progress: the member has not reported a status yet"
	a.Remedy = filled(byReason[placementv1beta1.ReasonApplyInProgress], *a, placement)
}

// writers lists the field managers of the object, the latest first.
func (f *ObjectFacts) writers() []string {
	if apierrors.IsNotFound(f.Unread) {
		return []string{"the object does not exist on the member"}
	}
	if f.Unread != nil {
		return []string{"reading the object from the member failed: " + untrusted.Line(f.Unread.Error())}
	}
	at := func(e metav1.ManagedFieldsEntry) time.Time {
		if e.Time == nil {
			return time.Time{}
		}
		return e.Time.Time
	}
	fields := slices.SortedFunc(slices.Values(f.Fields), func(a, b metav1.ManagedFieldsEntry) int { return at(b).Compare(at(a)) })
	var lines []string
	for i, e := range fields {
		what := "written"
		if i == 0 {
			what = "last written"
		}
		if e.Subresource != "" {
			what += " (" + e.Subresource + ")"
		}
		lines = append(lines, fmt.Sprintf("%s by %s at %s", what, untrusted.Line(e.Manager), at(e).UTC().Format(time.RFC3339)))
	}
	return lines
}
