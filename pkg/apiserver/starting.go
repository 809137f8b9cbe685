// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package apiserver

import (
	"context"
	"net/http"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/apiserver/pkg/endpoints/handlers/responsewriters"
	genericserver "k8s.io/apiserver/pkg/server"
	"k8s.io/apiserver/pkg/server/healthz"
)

// knownCheck is how often a server that cannot know its callers yet looks again.
const knownCheck = 100 * time.Millisecond

// onceKnown calls serving as soon as callers can be known.
func onceKnown(ctx context.Context, known func() error, serving func()) {
	err := wait.PollUntilContextCancel(ctx, knownCheck, true, func(context.Context) (bool, error) { return known() == nil, nil })
	if err == nil {
		serving()
	}
}

// holdBack has the server be not ready, and answer 503 to everything but probes, until
// callers can be known: to a 401 kubectl and client-go do not come back. The connection
// is closed with it, since a client that was not asked for its certificate never shows it.
func holdBack(generic *genericserver.Config, codecs runtime.NegotiatedSerializer, known func() error) {
	generic.ReadyzChecks = append(generic.ReadyzChecks, healthz.NamedCheck("callers", func(*http.Request) error { return known() }))
	build := generic.BuildHandlerChainFunc
	generic.BuildHandlerChainFunc = func(routed http.Handler, config *genericserver.Config) http.Handler {
		chain := build(routed, config)
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			err := known()
			if err == nil || slices.Contains(probePaths, r.URL.Path) {
				chain.ServeHTTP(w, r)
				return
			}
			starting := apierrors.NewServiceUnavailable("the gateway is starting: " + err.Error())
			starting.ErrStatus.Details = &metav1.StatusDetails{RetryAfterSeconds: 1}
			w.Header().Set("Connection", "close")
			responsewriters.ErrorNegotiated(starting, codecs, schema.GroupVersion{}, w, r)
		})
	}
}
