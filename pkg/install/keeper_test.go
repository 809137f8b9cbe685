// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package install

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// knownHub returns the user of a request, like an API server.
func knownHub(objects ...client.Object) client.Client {
	return fake.NewClientBuilder().WithScheme(clientgoscheme.Scheme).WithReturnManagedFields().WithObjects(objects...).WithInterceptorFuncs(interceptor.Funcs{
		Create: func(ctx context.Context, hub client.WithWatch, object client.Object, options ...client.CreateOption) error {
			switch asked := object.(type) {
			case *authenticationv1.SelfSubjectReview:
				asked.Status.UserInfo.Username = "gateway"
				return nil
			case *authorizationv1.SelfSubjectAccessReview:
				asked.Status.Allowed = false
				return nil
			}
			return hub.Create(ctx, object, options...)
		},
	}).Build()
}

func settings(text string) *corev1.ConfigMap {
	return &corev1.ConfigMap{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: "ConfigMap"},
		ObjectMeta: metav1.ObjectMeta{Namespace: "fleet-system", Name: "settings"},
		Data:       map[string]string{"text": text},
	}
}

func read(t *testing.T, hub client.Client) string {
	t.Helper()
	var found corev1.ConfigMap
	if err := hub.Get(t.Context(), client.ObjectKey{Namespace: "fleet-system", Name: "settings"}, &found); err != nil {
		t.Fatal(err)
	}
	return found.Data["text"]
}

func TestKeeper_InstallsCurrentContentAndRetries(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		hub, changed := knownHub(), make(chan struct{})
		var text atomic.Value // Empty while it is unknown.
		text.Store("")
		keeper := &Keeper{
			Installer: &Installer{Client: hub, Version: "v0.1.0", Clock: clock.RealClock{}},
			Wanted: func(_ context.Context, self Account) (Serving, error) {
				if self != (Account{Name: "gateway"}) {
					t.Errorf("account = %+v", self)
				}
				if text.Load() == "" {
					return Serving{}, errors.New("no certificate yet")
				}
				return Serving{Extra: []client.Object{settings(text.Load().(string))}}, nil
			},
			Changed: changed,
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- keeper.Start(ctx) }()
		synctest.Wait()
		text.Store("first")
		time.Sleep(2 * time.Second)
		synctest.Wait()
		if got := read(t, hub); got != "first" {
			t.Errorf("installed after a failure: %q", got)
		}
		text.Store("second")
		changed <- struct{}{}
		synctest.Wait()
		if got := read(t, hub); got != "second" {
			t.Errorf("after a change: %q", got)
		}
		text.Store("third")
		time.Sleep(keptEvery)
		synctest.Wait()
		if got := read(t, hub); got != "third" {
			t.Errorf("after the interval: %q", got)
		}
		if len(keeper.Installer.Extra) != 0 {
			t.Errorf("previous content is still wanted: %v", keeper.Installer.Extra)
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Start() = %v", err)
		}
	})
}

func TestKeeper_DoesNotApplyUpToDateObjects(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var (
			applied atomic.Int64
			failing atomic.Bool
		)
		hub := interceptor.NewClient(knownHub().(client.WithWatch), interceptor.Funcs{
			Apply: func(ctx context.Context, hub client.WithWatch, object runtime.ApplyConfiguration, options ...client.ApplyOption) error {
				if failing.Load() {
					return errors.New("the hub is unreachable")
				}
				applied.Add(1)
				return hub.Apply(ctx, object, options...)
			},
		})
		keeper := &Keeper{
			Installer: &Installer{Client: hub, Version: "v0.1.0", Clock: clock.RealClock{}},
			Wanted: func(context.Context, Account) (Serving, error) {
				return Serving{Extra: []client.Object{settings("ours")}}, nil
			},
		}
		ctx, stop := context.WithCancel(t.Context())
		ended := make(chan error)
		go func() { ended <- keeper.Start(ctx) }()
		after := func(periods int) int64 {
			applied.Store(0)
			time.Sleep(time.Duration(periods) * keptEvery)
			synctest.Wait()
			return applied.Load()
		}
		after(4)
		if n := after(10); n > 0 {
			t.Errorf("%d applies without a change", n)
		}
		var ours corev1.ConfigMap
		if err := hub.Get(ctx, client.ObjectKeyFromObject(settings("")), &ours); err != nil {
			t.Fatal(err)
		}
		ours.Data["text"] = "somebody's"
		failing.Store(true)
		if err := hub.Update(ctx, &ours); err != nil {
			t.Fatal(err)
		}
		if n := after(3); n > 0 || read(t, hub) != "somebody's" {
			t.Errorf("%d applies to an unreachable hub", n)
		}
		failing.Store(false)
		if n := after(5); n == 0 || read(t, hub) != "ours" {
			t.Errorf("after a foreign change: %d applies, content %q", n, read(t, hub))
		}
		stop()
		if err := <-ended; err != nil {
			t.Errorf("Start() = %v", err)
		}
	})
}

func TestKeeper_FailsOnHubOfAnotherProduct(t *testing.T) {
	keeper := &Keeper{
		Installer: &Installer{Client: knownHub(settings("theirs")), Version: "v0.1.0", Clock: clock.RealClock{}},
		Wanted: func(context.Context, Account) (Serving, error) {
			return Serving{Extra: []client.Object{settings("ours")}}, nil
		},
	}
	err := keeper.Start(t.Context())
	var foreign *ForeignObjectError
	if !errors.As(err, &foreign) || !strings.Contains(err.Error(), "settings") {
		t.Errorf("Start() = %v", err)
	}
	if got := read(t, keeper.Installer.Client); got != "theirs" {
		t.Errorf("content = %q", got)
	}
}
