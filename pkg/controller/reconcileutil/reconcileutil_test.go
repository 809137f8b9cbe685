// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcileutil

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

var namespaces = schema.GroupResource{Resource: "namespaces"}

func TestSetupError_NamesTheController(t *testing.T) {
	if err := SetupError("a.b", nil); err != nil {
		t.Error(err)
	}
	if err := SetupError("a.b", errors.New("no kind")); err == nil || err.Error() != "setting up controller a.b: no kind" {
		t.Error(err)
	}
}

// A write is one request that the API server received.
type write struct{ Kind, Patch string }

// hub returns a client with one Namespace, and the writes that it receives.
func hub(t *testing.T) (client.Client, *corev1.Namespace, *[]write) {
	t.Helper()
	var writes []write
	note := func(kind string, object client.Object, patch client.Patch) error {
		data, err := patch.Data(object)
		writes = append(writes, write{kind, string(data)})
		return err
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "a", Finalizers: []string{"of.people/stays"}}}
	c := fake.NewClientBuilder().WithObjects(namespace).WithStatusSubresource(namespace).WithInterceptorFuncs(interceptor.Funcs{
		Patch: func(ctx context.Context, c client.WithWatch, object client.Object, patch client.Patch, options ...client.PatchOption) error {
			return errors.Join(note("object", object, patch), c.Patch(ctx, object, patch, options...))
		},
		SubResourcePatch: func(ctx context.Context, c client.Client, part string, object client.Object, patch client.Patch, options ...client.SubResourcePatchOption) error {
			return errors.Join(note(part, object, patch), c.SubResource(part).Patch(ctx, object, patch, options...))
		},
	}).Build()
	if err := c.Get(t.Context(), client.ObjectKey{Name: "a"}, namespace); err != nil {
		t.Fatal(err)
	}
	return c, namespace, &writes
}

func TestPatch_SendsOnlyWhatChanged(t *testing.T) {
	c, object, writes := hub(t)
	twice := func(do func() error) {
		t.Helper()
		for range 2 {
			if err := do(); err != nil {
				t.Error(err)
			}
		}
	}
	twice(func() error {
		return Patch(t.Context(), c, object, func() { metav1.SetMetaDataLabel(&object.ObjectMeta, "x", "y") }, "labelling")
	})
	twice(func() error {
		return PatchStatus(t.Context(), c, object, func() { object.Status.Phase = corev1.NamespaceActive }, "telling")
	})
	twice(func() error { return AddFinalizer(t.Context(), c, object, "of.us/ends", "keeping") })
	twice(func() error { return RemoveFinalizer(t.Context(), c, object, "of.us/ends", "releasing") })
	want := []write{
		{"object", `{"metadata":{"labels":{"x":"y"},"resourceVersion":"999"}}`},
		{"status", `{"metadata":{"resourceVersion":"1000"},"status":{"phase":"Active"}}`},
		{"object", `{"metadata":{"finalizers":["of.people/stays","of.us/ends"],"resourceVersion":"1001"}}`},
		{"object", `{"metadata":{"finalizers":["of.people/stays"],"resourceVersion":"1002"}}`},
	}
	if diff := cmp.Diff(want, *writes); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestPatch_ConflictsWithANewerObject(t *testing.T) {
	c, object, _ := hub(t)
	theirs := object.DeepCopy()
	theirs.Labels = map[string]string{"x": "theirs"}
	if err := c.Update(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	err := Patch(t.Context(), c, object, func() { object.Labels = map[string]string{"x": "ours"} }, "labelling %s", object.Name)
	if !apierrors.IsConflict(err) {
		t.Errorf("got %v", err)
	}
}

func TestPatch_OfAMissingObject(t *testing.T) {
	c, object, _ := hub(t)
	missing := object.DeepCopy()
	missing.Name = "b"
	missing.Finalizers = []string{"of.us/ends"}
	if err := RemoveFinalizer(t.Context(), c, missing, "of.us/ends", "releasing %s", "b"); err != nil {
		t.Errorf("it has no finalizer: %v", err)
	}
	err := PatchStatus(t.Context(), c, missing, func() { missing.Status.Phase = corev1.NamespaceActive }, "telling %q", "b")
	if want := `telling "b": namespaces "b" not found`; !apierrors.IsNotFound(err) || err.Error() != want {
		t.Errorf("got %v, want %s", err, want)
	}
}

func TestGetIfExists(t *testing.T) {
	c, _, _ := hub(t)
	broken := interceptor.NewClient(c.(client.WithWatch), interceptor.Funcs{
		Get: func(context.Context, client.WithWatch, client.ObjectKey, client.Object, ...client.GetOption) error {
			return errors.New("no route to host")
		},
	})
	for name, tc := range map[string]struct {
		from  client.Reader
		key   string
		found bool
		err   string
	}{
		"exists":         {c, "a", true, ""},
		"does not exist": {c, "b", false, ""},
		"read fails":     {broken, "a", false, `reading namespace "a": no route to host`},
	} {
		found, err := GetIfExists(t.Context(), tc.from, client.ObjectKey{Name: tc.key}, &corev1.Namespace{}, "reading namespace %q", tc.key)
		got := ""
		if err != nil {
			got = err.Error()
		}
		if found != tc.found || got != tc.err {
			t.Errorf("%s: found %t, %q", name, found, got)
		}
	}
}
