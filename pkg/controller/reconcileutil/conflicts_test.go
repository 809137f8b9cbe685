// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package reconcileutil

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

func TestRetryConflicts_RetriesOnlyConflicts(t *testing.T) {
	failed := errors.New("no route to host")
	for name, tc := range map[string]struct {
		err, want error
		result    ctrl.Result
	}{
		"no error":       {nil, nil, ctrl.Result{RequeueAfter: time.Hour}},
		"conflict":       {fmt.Errorf("writing: %w", apierrors.NewConflict(namespaces, "a", nil)), nil, ctrl.Result{RequeueAfter: ConflictDelay}},
		"already exists": {apierrors.NewAlreadyExists(namespaces, "a"), nil, ctrl.Result{RequeueAfter: ConflictDelay}},
		"other error":    {failed, failed, ctrl.Result{}},
	} {
		r := RetryConflicts(reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
			return RequeueOnConflict(ctrl.Result{RequeueAfter: time.Hour}, tc.err)
		}))
		result, err := r.Reconcile(t.Context(), ctrl.Request{})
		if diff := cmp.Diff(tc.result, result); diff != "" || !errors.Is(err, tc.want) {
			t.Errorf("%s: %v (-want +got)\n%s", name, err, diff)
		}
	}
}

// Retries at a fixed rate and without a log line were a storm of writes on a slow hub.
func TestRetryConflicts_BacksOffByRequestAndLogsWhenConflictsContinue(t *testing.T) {
	var lines []string
	ctx := log.IntoContext(t.Context(), funcr.New(func(_, args string) { lines = append(lines, args) }, funcr.Options{}))
	conflicts := true
	r := RetryConflictsAfter(10*time.Millisecond, reconcile.Func(func(context.Context, ctrl.Request) (ctrl.Result, error) {
		if conflicts {
			return RequeueOnConflict(ctrl.Result{}, apierrors.NewConflict(namespaces, "a", errors.New("it was changed")))
		}
		return ctrl.Result{}, nil
	}))
	delayOf := func(name string) time.Duration {
		t.Helper()
		result, err := r.Reconcile(ctx, ctrl.Request{NamespacedName: types.NamespacedName{Name: name}})
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	for n := range 8 {
		if got, want := delayOf("a"), 10*time.Millisecond<<n; got != want {
			t.Errorf("conflict %d is retried after %v, want %v", n+1, got, want)
		}
	}
	if len(lines) != 3 || !strings.Contains(lines[0], `"conflicts"=6`) || !strings.Contains(lines[0], "it was changed") {
		t.Errorf("got log lines %q", lines)
	}
	if got := delayOf("b"); got != 10*time.Millisecond {
		t.Errorf("the first conflict of another request is retried after %v", got)
	}
	for range 100 {
		delayOf("a")
	}
	if got := delayOf("a"); got != longestConflictDelay {
		t.Errorf("after many conflicts the delay is %v", got)
	}
	conflicts = false
	delayOf("a")
	conflicts = true
	if got := delayOf("a"); got != 10*time.Millisecond {
		t.Errorf("the first conflict after a success is retried after %v", got)
	}
}
