#!/bin/sh
kubectl get pods --all-namespaces -o json > collected_data.json
