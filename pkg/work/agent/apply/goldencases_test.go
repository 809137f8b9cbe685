// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apply

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	jsonpatch "github.com/evanphx/json-patch/v5"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/controller-runtime/pkg/client"

	clusterv1beta1 "fleetgate.io/fleetgate/pkg/apis/cluster/v1beta1"
	placementv1beta1 "fleetgate.io/fleetgate/pkg/apis/placement/v1beta1"
)

var mergePatch = jsonpatch.MergePatch

const (
	pathA      = "/api/v1/namespaces/ns/configmaps/a"
	pathSecret = "/api/v1/namespaces/ns/secrets/s"

	manifestNamespace  = `{"apiVersion":"v1","kind":"Namespace","metadata":{"name":"ns"}}`
	manifestSecret     = `{"apiVersion":"v1","kind":"Secret","metadata":{"namespace":"ns","name":"s"},"data":{"password":"aGlkZGVu"}}`
	manifestDeployment = `{"apiVersion":"apps/v1","kind":"Deployment","metadata":{"namespace":"ns","name":"web","labels":{"a":"b"}},
		"spec":{"selector":{"matchLabels":{"a":"b"}},"template":{"metadata":{"labels":{"a":"b"}},"spec":{"containers":[{"name":"main","image":"one"}]}}}}`
	manifestRole       = `{"apiVersion":"rbac.authorization.k8s.io/v1","kind":"ClusterRole","metadata":{"name":"reader"},"rules":[]}`
	manifestWidget     = `{"apiVersion":"example.com/v1","kind":"Widget","metadata":{"name":"w"},"spec":{"size":1}}`
	manifestUnreadable = `{"apiVersion":"v1"}`
	manifestCRD        = `{"apiVersion":"apiextensions.k8s.io/v1","kind":"CustomResourceDefinition","metadata":{"name":"widgets.example.com"},
		"spec":{"group":"example.com","names":{"kind":"Widget","plural":"widgets"},"scope":"Cluster","versions":[]}}`
)

func manifestA(value string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a"},"data":{"a":"` + value + `"}}`
}

// objectA returns ConfigMap ns/a as another client creates it, with owners.
func objectA(value string, owners ...string) string {
	return `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a","ownerReferences":[` +
		strings.Join(owners, ",") + `]},"data":{"a":"` + value + `"}}`
}

func ownerNamed(name string) string {
	return fmt.Sprintf(`{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"AppliedWork","name":%q,"uid":"u"}`, name)
}

const strangerOwner = `{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"set","uid":"v"}`

// refuse makes the member reject requests to paths with this suffix.
func (b *bed) refuse(verb, path string, answer *apierrors.StatusError) {
	b.member.answer = func(got, at string) *apierrors.StatusError {
		if got == verb && strings.HasSuffix(at, path) {
			return answer
		}
		return nil
	}
}

func denied(verb, resource string) *apierrors.StatusError {
	return apierrors.NewForbidden(schema.GroupResource{Resource: resource}, "a",
		fmt.Errorf("User %q cannot %s resource %q in API group %q in the namespace %q", "agent", verb, resource, "", "ns"))
}

func immutableField(kind string) *apierrors.StatusError {
	return apierrors.NewInvalid(schema.GroupKind{Kind: kind}, "a", field.ErrorList{
		field.Invalid(field.NewPath("data"), "hidden", "field is immutable when `immutable` is set")})
}

type strategy = placementv1beta1.ApplyStrategy

func describe(s any) string {
	text, _ := json.Marshal(s)
	return string(text)
}

var serverSide = strategy{Type: placementv1beta1.ServerSideApply}

// looked returns the effect of one reconcile of a Work, for several strategies, on ConfigMap ns/a.
func looked(strategies []strategy, values ...string) func(*testing.T) string {
	return func(t *testing.T) string {
		var log strings.Builder
		for _, s := range strategies {
			for _, there := range values {
				b := newBed(t, Options{}, newWork("work", &s, manifestA("1")))
				fmt.Fprintf(&log, "# %s, there is %s\n", describe(s), there)
				if there != "" {
					b.meddle(pathA, there)
				}
				b.look("work")
				b.look("work")
				b.said("work")
				log.WriteString(b.log.String())
			}
		}
		return log.String()
	}
}

var owned = []string{"", objectA("1"), objectA("2"), objectA("2", ownerNamed("work")), objectA("2", ownerNamed("other")),
	objectA("2", ownerNamed("work"), ownerNamed("other")), objectA("2", strangerOwner), objectA("2", ownerNamed("work"), strangerOwner)}

var goldenLooks = map[string]func(*testing.T) string{
	"taking over on the client's side": looked([]strategy{{}, {AllowCoOwnership: true}, {WhenToTakeOver: placementv1beta1.TakeOverNever},
		{WhenToTakeOver: placementv1beta1.TakeOverIfNoDiff}, {WhenToTakeOver: placementv1beta1.TakeOverIfNoDiff, ComparisonOption: placementv1beta1.FullComparison}}, owned...),
	"taking over on the server's side": looked([]strategy{serverSide, {Type: placementv1beta1.ServerSideApply, AllowCoOwnership: true},
		{Type: placementv1beta1.ServerSideApply, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}},
		{Type: placementv1beta1.ServerSideApply, WhenToTakeOver: placementv1beta1.TakeOverIfNoDiff}}, owned...),
	"comparing": looked([]strategy{{Type: placementv1beta1.ReportDiff}, {Type: placementv1beta1.ReportDiff, ComparisonOption: placementv1beta1.FullComparison},
		{ComparisonOption: placementv1beta1.FullComparison}}, owned...),
	"a work of all sorts":      allSorts,
	"a work that changes":      changing,
	"a drift":                  drifting,
	"a contest":                contesting,
	"answers of a member":      memberErrors,
	"immutable fields":         immutable,
	"an end":                   ending,
	"a work that vanished":     vanishing,
	"heirs":                    inheriting,
	"records":                  recording,
	"a kind and its objects":   defining,
	"rights of a namespace":    borrowing,
	"fields of other managers": conflicting,
}

func allSorts(t *testing.T) string {
	large := strings.Repeat("x", 256<<10) // too large for the last-applied annotation
	b := newBed(t, Options{}, newWork("work", nil, manifestDeployment, manifestA("1"), manifestWidget, manifestUnreadable, manifestA("2"), manifestSecret,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"generateName":"a"}}`, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"name":"b"}}`,
		`{"apiVersion":"v1","kind":"Namespace","metadata":{"namespace":"ns","name":"b"}}`, manifestRole, manifestNamespace,
		`{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"large"},"data":{"a":"`+large+`"}}`,
		`{"apiVersion":"v1","kind":"Service","metadata":{"namespace":"ns","name":"web","annotations":{"mine":"1","kubernetes-fleet.io/spec-hash":"2"}},"spec":{}}`))
	b.look("work")
	b.look("work")
	b.change("work", func(w *placementv1beta1.Work) {
		w.Spec.ReportBackStrategy = &placementv1beta1.ReportBackStrategy{Type: placementv1beta1.ReportBackMirror}
	})
	b.meddle("/api/v1/namespaces/ns/services/web", `{"status":{"loadBalancer":{"ingress":[{"ip":"10.0.0.1"}]}}}`)
	b.meddle("/apis/apps/v1/namespaces/ns/deployments/web", `{"status":{"observedGeneration":1,"replicas":1,"updatedReplicas":1,"availableReplicas":1}}`)
	b.look("work")
	b.said("work")
	return b.log.String()
}

func changing(t *testing.T) string {
	b := newBed(t, Options{}, newWork("work", nil, manifestNamespace, manifestA("1"), manifestDeployment, manifestSecret))
	b.look("work")
	b.change("work", func(w *placementv1beta1.Work) { w.Spec.Workload.Manifests = raw(manifestA("2"), manifestDeployment) })
	b.look("work")
	b.change("work", func(w *placementv1beta1.Work) {
		w.Spec.Workload.Manifests = raw(manifestUnreadable, manifestDeployment)
	})
	b.look("work") // removes nothing
	b.said("work")
	b.change("work", func(w *placementv1beta1.Work) {
		w.Spec.Workload.Manifests = raw(manifestDeployment)
		w.Spec.ApplyStrategy = &serverSide
	})
	b.look("work")
	b.lose("/api/v1/namespaces/ns")
	b.look("work")
	b.said("work")
	return b.log.String()
}

func drifting(t *testing.T) string {
	var log strings.Builder
	kept := placementv1beta1.ApplyIfNotDrifted
	for _, s := range []strategy{{}, {WhenToApply: kept}, {WhenToApply: kept, ComparisonOption: placementv1beta1.FullComparison},
		{WhenToApply: kept, Type: placementv1beta1.ServerSideApply}} {
		fmt.Fprintf(&log, "# %s\n", describe(s))
		b := newBed(t, Options{}, newWork("work", &s, manifestA("1"), manifestSecret))
		b.look("work")
		b.meddle(pathA, `{"data":{"a":"theirs","b":"more"}}`)
		b.meddle(pathSecret, `{"data":{"password":"dGhlaXJz"}}`)
		b.look("work")
		b.look("work")
		b.said("work")
		b.change("work", func(w *placementv1beta1.Work) { w.Spec.Workload.Manifests = raw(manifestA("2"), manifestSecret) })
		b.look("work")
		b.said("work")
		log.WriteString(b.log.String())
	}
	return log.String()
}

func contesting(t *testing.T) string {
	b := newBed(t, Options{}, newWork("work", nil, manifestA("1")))
	b.look("work")
	for range 5 {
		b.meddle(pathA, `{"data":{"a":"theirs"},"metadata":{"managedFields":[{"manager":"other","operation":"Update",
			"time":"2026-01-01T00:00:00Z","fieldsV1":{"f:data":{"f:a":{}}}}]}}`)
		b.look("work")
		b.clock.SetTime(b.clock.Now().Add(2 * time.Second))
	}
	b.said("work")
	b.lose(pathA)
	b.look("work")
	b.clock.SetTime(b.clock.Now().Add(time.Hour))
	b.look("work")
	b.said("work")
	return b.log.String()
}

func memberErrors(t *testing.T) string {
	var log strings.Builder
	unnamed := &apierrors.StatusError{ErrStatus: metav1.Status{Status: "Failure", Code: http.StatusInternalServerError, Reason: metav1.StatusReasonInternalError, Message: "a webhook failed"}}
	for _, s := range []strategy{{}, {Type: placementv1beta1.ReportDiff}, {WhenToApply: placementv1beta1.ApplyIfNotDrifted}, {WhenToTakeOver: placementv1beta1.TakeOverIfNoDiff, AllowCoOwnership: true}} {
		for _, there := range []string{"", objectA("2", ownerNamed("work"))} {
			for _, answer := range []struct {
				verb, path string
				with       *apierrors.StatusError
			}{
				{"GET", "/configmaps/a", denied("get", "configmaps")}, {"GET", "/configmaps/a", apierrors.NewServiceUnavailable("starting")},
				{"POST", "/configmaps", denied("create", "configmaps")}, {"POST", "/configmaps", unnamed}, {"POST", "/configmaps", apierrors.NewTooManyRequests("later", 1)},
				{"PATCH", "/configmaps/a", denied("patch", "configmaps")}, {"PATCH", "/configmaps/a", unnamed}, {"PATCH", "/configmaps/a", immutableField("ConfigMap")},
				{"POST", "/secrets", apierrors.NewBadRequest("it says hidden")},
			} {
				if (there == "") == (answer.verb == http.MethodPatch) {
					continue
				}
				fmt.Fprintf(&log, "# %s, there is %s, %s %s is %s\n", describe(s), there, answer.verb, answer.path, answer.with.ErrStatus.Message)
				b := newBed(t, Options{}, newWork("work", &s, manifestA("1"), manifestSecret))
				if there != "" {
					b.meddle(pathA, there)
				}
				b.refuse(answer.verb, answer.path, answer.with)
				b.look("work")
				b.said("work")
				b.member.answer = nil
				log.WriteString(b.log.String())
			}
		}
	}
	return log.String()
}

func immutable(t *testing.T) string {
	var log strings.Builder
	const annotated = `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a","annotations":{"` +
		placementv1beta1.ImmutableChangeAnnotation + `":"` + placementv1beta1.ImmutableChangeRecreate + `"}},"data":{"a":"1"}}`
	for _, there := range []string{objectA("2", ownerNamed("work")), objectA("2", ownerNamed("work"), strangerOwner)} {
		for _, manifest := range []string{manifestA("1"), annotated} {
			for _, s := range []strategy{{}, {AllowCoOwnership: true}} {
				fmt.Fprintf(&log, "# %s, there is %s, wanted is %s\n", describe(s), there, manifest)
				b := newBed(t, Options{}, newWork("work", &s, manifest, manifestNamespace))
				b.meddle(pathA, there)
				b.meddle("/api/v1/namespaces/ns", manifestNamespace)
				b.member.answer = func(verb, path string) *apierrors.StatusError {
					if verb == http.MethodPatch && strings.HasPrefix(path, "/api/v1/namespaces/") {
						return immutableField("ConfigMap")
					}
					return nil
				}
				b.look("work")
				b.look("work")
				b.said("work")
				log.WriteString(b.log.String())
			}
		}
	}
	return log.String()
}

func ending(t *testing.T) string {
	var log strings.Builder
	abandon := func(w *placementv1beta1.Work) {
		metav1.SetMetaDataAnnotation(&w.ObjectMeta, placementv1beta1.DeletePolicyAnnotation, placementv1beta1.DeletePolicyAbandon)
	}
	for _, tc := range []struct {
		name string
		with func(*bed)
	}{
		{"in order", func(*bed) {}},
		{"abandoned", func(b *bed) { b.change("work", abandon) }},
		{"held", func(b *bed) { b.meddle(pathA, `{"metadata":{"finalizers":["example.com/held"]}}`) }},
		{"denied", func(b *bed) { b.refuse("DELETE", "/configmaps/a", denied("delete", "configmaps")) }},
		{"shared", func(b *bed) { b.meddle(pathA, objectA("1", ownerNamed("work"), ownerNamed("other"))) }},
		{"no record any more", func(b *bed) { b.lose(recordPath("work")) }},
		{"failing", func(b *bed) { b.refuse("GET", "/configmaps/a", apierrors.NewServiceUnavailable("starting")) }},
		{"the member has left", func(b *bed) { b.join(clusterv1beta1.ClusterStateLeave) }},
		{"another hub's record", func(b *bed) {
			b.meddle(recordPath("work"), `{"metadata":{"annotations":{"`+HubAnnotation+`":"another"}}}`)
		}},
	} {
		b := newBed(t, Options{}, newWork("work", nil, manifestA("1"), manifestDeployment, manifestRole))
		fmt.Fprintf(b.log, "# %s\n", tc.name)
		b.look("work")
		tc.with(b)
		if err := b.hub.Delete(t.Context(), b.work("work")); err != nil {
			t.Fatal(err)
		}
		b.look("work")
		b.end("work")
		log.WriteString(b.log.String())
	}
	return log.String()
}

// end reconciles a deleted Work until it is gone or blocked.
func (b *bed) end(name string) {
	b.Helper()
	if err := b.hub.Get(b.Context(), client.ObjectKey{Namespace: memberNamespace, Name: name}, &placementv1beta1.Work{}); err == nil {
		b.said(name)
		b.lose("/apis/apps/v1/namespaces/ns/deployments/web")
		b.look(name)
		b.lose(recordPath(name))
		b.look(name)
	}
	b.look(name)
	for _, path := range []string{pathA, recordPath(name)} {
		fmt.Fprintf(b.log, "- %s is there: %t\n", path, b.member.objects[path] != nil)
	}
}

// join sets the state of the member on the hub.
func (b *bed) join(state clusterv1beta1.ClusterState) {
	b.Helper()
	member := &clusterv1beta1.InternalMemberCluster{}
	err := b.hub.Get(b.Context(), client.ObjectKey{Namespace: memberNamespace, Name: "m"}, member)
	member.Spec.State = state
	if err = errors.Join(err, b.hub.Update(b.Context(), member)); err != nil {
		b.Fatal(err)
	}
}

func vanishing(t *testing.T) string {
	b := newBed(t, Options{}, newWork("work", nil, manifestA("1")))
	b.look("work")
	gone := b.work("work")
	gone.Finalizers = nil
	if err := errors.Join(b.hub.Update(t.Context(), gone), b.hub.Delete(t.Context(), gone)); err != nil {
		t.Fatal(err)
	}
	b.look("work")
	b.look("work")
	b.lose(recordPath("work"))
	b.look("work")
	b.meddle(recordPath("other"), `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"AppliedWork","metadata":{"name":"other",
		"annotations":{"fleetgate.io/membership":"before"}},"spec":{"workName":"other","workNamespace":"fleet-member-m"}}`)
	b.look("other")
	return b.log.String()
}

func inheriting(t *testing.T) string {
	var log strings.Builder
	labelled := func(work *placementv1beta1.Work, binding, snapshot string) *placementv1beta1.Work {
		work.Labels = map[string]string{placementv1beta1.ParentBindingLabel: binding, placementv1beta1.ParentResourceSnapshotIndexLabel: snapshot}
		return work
	}
	for _, other := range []*placementv1beta1.Work{
		labelled(newWork("other", nil, manifestA("2")), "b", "1"),
		labelled(newWork("other", nil, manifestA("2")), "b", "2"),
		labelled(newWork("other", nil, manifestA("2")), "c", "1"),
		labelled(newWork("other", &strategy{WhenToTakeOver: placementv1beta1.TakeOverNever}, manifestA("2")), "c", "1"),
	} {
		fmt.Fprintf(&log, "# the other is %v, %s\n", other.Labels, describe(other.Spec.ApplyStrategy))
		b := newBed(t, Options{}, labelled(newWork("work", nil, manifestA("1"), manifestRole), "b", "1"), other)
		b.look("work")
		b.change("work", func(w *placementv1beta1.Work) { w.Spec.Workload.Manifests = raw(manifestRole) })
		b.look("work")
		b.change("work", func(w *placementv1beta1.Work) { w.Labels[placementv1beta1.ParentResourceSnapshotIndexLabel] = "2" })
		b.look("work")
		b.said("work")
		b.look("other")
		b.said("other")
		log.WriteString(b.log.String())
	}
	return log.String()
}

func recording(t *testing.T) string {
	var log strings.Builder
	const foreign = `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"AppliedWork","metadata":{"name":"work"},
		"spec":{"workName":"work","workNamespace":"fleet-member-elsewhere"}}`
	const earlier = `{"apiVersion":"placement.kubernetes-fleet.io/v1beta1","kind":"AppliedWork","metadata":{"name":"work",
		"annotations":{"fleetgate.io/membership":"before"}},"spec":{"workName":"work","workNamespace":"fleet-member-m"}}`
	for _, tc := range []struct {
		name    string
		options Options
		with    func(*bed)
	}{
		{"another hub's", Options{}, func(b *bed) { b.meddle(recordPath("work"), foreign) }},
		{"of an earlier membership", Options{}, func(b *bed) { b.meddle(recordPath("work"), earlier) }},
		{"of a hub with a name", Options{HubName: "two"}, func(*bed) {}},
		{"going", Options{}, func(b *bed) {
			b.meddle(recordPath("work"), earlier)
			b.meddle(recordPath("work"), `{"metadata":{"deletionTimestamp":"2026-01-01T00:00:00Z","finalizers":["example.com/held"]}}`)
		}},
		{"not for us to make", Options{}, func(b *bed) { b.refuse("POST", "/appliedworks", denied("create", "appliedworks")) }},
		{"not for us to fill", Options{}, func(b *bed) { b.refuse("PUT", "/appliedworks/work", denied("update", "appliedworks/status")) }},
		{"of a member that does not answer", Options{}, func(b *bed) { b.refuse("GET", "/appliedworks/work", apierrors.NewServiceUnavailable("starting")) }},
		{"of a member that has not joined", Options{}, func(b *bed) { b.join(clusterv1beta1.ClusterStateLeave) }},
	} {
		b := newBed(t, tc.options, newWork("work", nil, manifestUnreadable, manifestA("1")))
		fmt.Fprintf(b.log, "# %s\n", tc.name)
		tc.with(b)
		b.look("work")
		b.look("work")
		b.said("work")
		log.WriteString(b.log.String())
	}
	return log.String()
}

func defining(t *testing.T) string {
	b := newBed(t, Options{}, newWork("work", nil, manifestWidget, manifestCRD))
	b.look("work")
	b.look("work")
	b.said("work")
	return b.log.String()
}

func borrowing(t *testing.T) string {
	work := newWork("work", nil, manifestA("1"), manifestSecret)
	work.Labels = map[string]string{placementv1beta1.ParentPlacementNamespaceLabel: "shop"}
	b := newBed(t, Options{NamespacedApplier: "deployer"}, work)
	b.refuse("POST", "/secrets", denied("create", "secrets"))
	b.look("work")
	b.said("work")
	b.change("work", func(w *placementv1beta1.Work) { w.Spec.Workload.Manifests = raw(manifestSecret) })
	b.look("work")
	return b.log.String()
}

func conflicting(t *testing.T) string {
	var log strings.Builder
	forcing := strategy{Type: placementv1beta1.ServerSideApply, ServerSideApplyConfig: &placementv1beta1.ServerSideApplyConfig{ForceConflicts: true}}
	for _, s := range []strategy{serverSide, forcing} {
		for _, manager := range []string{FieldManager, "other"} {
			fmt.Fprintf(&log, "# %s, held by %s\n", describe(s), manager)
			b := newBed(t, Options{}, newWork("work", &s, manifestA("1")))
			b.meddle(pathA, `{"apiVersion":"v1","kind":"ConfigMap","metadata":{"namespace":"ns","name":"a","managedFields":[{"manager":"`+manager+`",
				"operation":"Update","apiVersion":"v1","fieldsType":"FieldsV1","fieldsV1":{"f:data":{"f:a":{}}}}]},"data":{"a":"2"}}`)
			if manager == "other" {
				b.refuse("PATCH", "/configmaps/a", fieldConflict())
			}
			b.look("work")
			b.said("work")
			log.WriteString(b.log.String())
		}
	}
	return log.String()
}
