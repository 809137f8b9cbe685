// Copyright The fleetgate Authors.
// SPDX-License-Identifier: Apache-2.0

package intake

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
	"k8s.io/utils/clock"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

const (
	// believed is how long the hub's answer about its configurations is cached, so that unknown
	// callers cause no more reads.
	believed = time.Second
	// afterwards is how long reviews without proof are accepted after the configuration that sends
	// them was replaced, because every API server has to notice.
	afterwards = time.Minute
	// probeTime is how long the hub, or a replica, may take to answer.
	probeTime = 3 * time.Second
)

// Handover manages the transition from reviews without proof, which older gateways configure, to
// proved ones, and back if such a gateway returns. No review is lost during it. Every replica calls
// Unproved, the leader calls Over.
type Handover struct {
	// Hub reads the API server without a cache.
	Hub client.Reader
	// Namespace, Service and Port are where older configurations send reviews directly.
	Namespace, Service string
	Port               int32
	// ServerName is the name in the certificates of the replicas.
	ServerName string
	// Mutating and Validating name the gateway's configurations.
	Mutating, Validating []string
	Clock                clock.PassiveClock

	// over is true once configurations may send reviews with proof.
	over atomic.Bool

	// mu guards the following fields.
	mu        sync.Mutex
	asked     time.Time
	openUntil time.Time
}

// Unproved is true while a configuration on the hub sends reviews here without proof, and a minute
// longer. It is false if the hub cannot be read.
func (h *Handover) Unproved(ctx context.Context) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := h.Clock.Now()
	if now.Before(h.openUntil) {
		return true
	}
	if now.Sub(h.asked) < believed {
		return false
	}
	asking, cancel := context.WithTimeout(ctx, probeTime)
	defer cancel()
	direct, err := h.Direct(asking)
	h.asked = now
	if err != nil {
		log.FromContext(ctx).Error(err, "A review without proof was refused, since the hub did not say whether it sends such")
		return false
	}
	if direct {
		h.openUntil = now.Add(afterwards)
	}
	return direct
}

// Over is true once every review can come with proof, and stays true: the configurations that are
// then written must not change it. The CA verifies the replicas. An error means that the hub's
// configurations could not be read.
func (h *Handover) Over(ctx context.Context, ca []byte) (bool, error) {
	if h.over.Load() {
		return true, nil
	}
	before, err := h.Direct(ctx)
	if err != nil {
		return false, err
	}
	if before {
		if err := h.Ready(ctx, ca); err != nil {
			log.FromContext(ctx).Info("Reviews still come to the webhooks' port without proof of who sends them, since an older gateway had them sent so", "waitsFor", err.Error())
			return false, nil
		}
	}
	h.over.Store(true)
	return true, nil
}

// Direct is true if a configuration on the hub sends reviews to the Service's port directly.
func (h *Handover) Direct(ctx context.Context) (bool, error) {
	var configs []admissionregistrationv1.WebhookClientConfig
	for _, name := range h.Mutating {
		var found admissionregistrationv1.MutatingWebhookConfiguration
		if err := h.Hub.Get(ctx, client.ObjectKey{Name: name}, &found); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading MutatingWebhookConfiguration %s: %w", name, err)
		}
		for _, webhook := range found.Webhooks {
			configs = append(configs, webhook.ClientConfig)
		}
	}
	for _, name := range h.Validating {
		var found admissionregistrationv1.ValidatingWebhookConfiguration
		if err := h.Hub.Get(ctx, client.ObjectKey{Name: name}, &found); client.IgnoreNotFound(err) != nil {
			return false, fmt.Errorf("reading ValidatingWebhookConfiguration %s: %w", name, err)
		}
		for _, webhook := range found.Webhooks {
			configs = append(configs, webhook.ClientConfig)
		}
	}
	return slices.ContainsFunc(configs, func(c admissionregistrationv1.WebhookClientConfig) bool {
		return c.Service != nil && c.Service.Namespace == h.Namespace && c.Service.Name == h.Service && ptr.Deref(c.Service.Port, 0) == h.Port
	}), nil
}

// Ready returns nil if every review that comes through the aggregated group is answered: the API
// server finds the group available, and each replica that it could choose accepts reviews from the
// group. The CA verifies the replicas.
func (h *Handover) Ready(ctx context.Context, ca []byte) error {
	var service apiregistrationv1.APIService
	if err := h.Hub.Get(ctx, client.ObjectKey{Name: GroupVersion.Version + "." + GroupVersion.Group}, &service); err != nil {
		return fmt.Errorf("reading the APIService: %w", err)
	}
	if err := available(&service); err != nil {
		return err
	}
	var found discoveryv1.EndpointSliceList
	if err := h.Hub.List(ctx, &found, client.InNamespace(h.Namespace), client.MatchingLabels{discoveryv1.LabelServiceName: h.Service}); err != nil {
		return fmt.Errorf("listing the endpoints of Service %s/%s: %w", h.Namespace, h.Service, err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	transport := &http.Transport{TLSClientConfig: &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots, ServerName: h.ServerName}}
	defer transport.CloseIdleConnections()
	prober := &http.Client{Transport: transport, Timeout: probeTime}
	for _, slice := range found.Items {
		for _, endpoint := range slice.Endpoints {
			if !ptr.Deref(endpoint.Conditions.Ready, true) || len(endpoint.Addresses) == 0 {
				continue
			}
			if err := takes(ctx, prober, net.JoinHostPort(endpoint.Addresses[0], strconv.Itoa(int(h.Port)))); err != nil {
				return err
			}
		}
	}
	return nil
}

func available(service *apiregistrationv1.APIService) error {
	for _, condition := range service.Status.Conditions {
		if condition.Type != apiregistrationv1.Available {
			continue
		}
		if condition.Status == apiregistrationv1.ConditionTrue {
			return nil
		}
		return fmt.Errorf("APIService %s is not available: %s", service.Name, condition.Message)
	}
	return fmt.Errorf("APIService %s has not been looked at yet", service.Name)
}

// takes returns nil if the replica knows the group, and therefore refuses a request without proof.
// An older replica does not know it.
func takes(ctx context.Context, prober *http.Client, replica string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, "https://"+replica+groupPath(), nil)
	if err != nil {
		return err
	}
	response, err := prober.Do(request)
	if err != nil {
		return fmt.Errorf("asking replica %s which reviews it accepts: %w", replica, err)
	}
	err = response.Body.Close()
	if response.StatusCode != http.StatusUnauthorized {
		return errors.Join(err, fmt.Errorf("replica %s is of a version that does not take reviews through %s", replica, GroupVersion))
	}
	return err
}
