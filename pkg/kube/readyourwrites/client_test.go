// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package readyourwrites

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
)

// never is a cache that does not see the written objects.
func never() client.Client {
	return interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Get: func(ctx context.Context, _ client.WithWatch, _ client.ObjectKey, _ client.Object, _ ...client.GetOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
		List: func(ctx context.Context, _ client.WithWatch, _ client.ObjectList, _ ...client.ListOption) error {
			<-ctx.Done()
			return ctx.Err()
		},
	})
}

func TestClient_ReadThatWaitsTooLongStopsManager(t *testing.T) {
	for name, read := range map[string]func(context.Context, client.Client) error{
		"get": func(ctx context.Context, c client.Client) error {
			return c.Get(ctx, client.ObjectKey{Name: "a"}, &corev1.Node{})
		},
		"list": func(ctx context.Context, c client.Client) error { return c.List(ctx, &corev1.NodeList{}) },
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				c := &impatient{Client: never(), late: make(chan error, 1)}
				ended := make(chan error, 1)
				go func() { ended <- c.Start(t.Context()) }()
				began := time.Now()
				if err := read(t.Context(), c); !errors.Is(err, errLate) {
					t.Errorf("the read ends with %v, want %v", err, errLate)
				}
				if waited := time.Since(began); waited != patience {
					t.Errorf("it waited for %s, want %s", waited, patience)
				}
				if err := <-ended; !errors.Is(err, errLate) {
					t.Errorf("the manager ends with %v, want %v", err, errLate)
				}
				if err := read(t.Context(), c); !errors.Is(err, errLate) {
					t.Errorf("the next read ends with %v, want %v", err, errLate)
				}
			})
		})
	}
}

func TestClient_CancelledReadIsNotLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &impatient{Client: never(), late: make(chan error, 1)}
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		if err := c.List(ctx, &corev1.NodeList{}); errors.Is(err, errLate) || !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("the read ends with %v, want that its context has ended", err)
		}
		if len(c.late) != 0 {
			t.Error("the leader-elected controllers would end")
		}
		stopped, stop := context.WithCancel(t.Context())
		stop()
		if err := c.Start(stopped); err != nil {
			t.Errorf("a manager that is stopped ends with %v", err)
		}
	})
}

func TestClient_DeleteUsesUID(t *testing.T) {
	var asked *metav1.Preconditions
	c := &impatient{Client: interceptor.NewClient(fake.NewClientBuilder().Build(), interceptor.Funcs{
		Delete: func(_ context.Context, _ client.WithWatch, _ client.Object, options ...client.DeleteOption) error {
			asked = (&client.DeleteOptions{}).ApplyOptions(options).Preconditions
			return nil
		},
	})}
	node := &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "a", UID: "1"}}
	other, version := types.UID("2"), "7"
	for _, test := range []struct {
		options []client.DeleteOption
		uid     types.UID
		version string
	}{
		{uid: "1"},
		{options: []client.DeleteOption{client.Preconditions{ResourceVersion: &version}}, uid: "1", version: "7"},
		{options: []client.DeleteOption{client.Preconditions{UID: &other}, client.PropagationPolicy("Foreground")}, uid: "2"},
	} {
		if err := c.Delete(t.Context(), node, test.options...); err != nil {
			t.Fatal(err)
		}
		got := ""
		if asked.ResourceVersion != nil {
			got = *asked.ResourceVersion
		}
		if *asked.UID != test.uid || got != test.version {
			t.Errorf("with %v: asked for UID %q and version %q, want %q, %q", test.options, *asked.UID, got, test.uid, test.version)
		}
	}
	err := c.Delete(t.Context(), &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "b"}})
	if err == nil || !strings.Contains(err.Error(), "UID") {
		t.Errorf("one without UID: %v", err)
	}
}
